"""ListTransactions tells what this broker coordinates, also where a part of it cannot be read."""

from __future__ import annotations

from millstream.broker.coordinator import java_hash
from millstream.broker.peers import Peers
from millstream.client.produce import init_producer_id
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.list_transactions import ListTransactionsRequest
from millstream.runtime.shard import Stage
from millstream.testing.cluster import CLIENT_PORT, SimulatedCluster

PARTITIONS = 2


async def scenario(cluster: SimulatedCluster) -> None:
    await cluster.start()
    client = cluster.client()
    names = ("a", "b")
    assert [java_hash(name) % PARTITIONS for name in names] == [1, 0]
    for name in names:
        await init_producer_id(client, transactional_id=name)
    node = cluster.nodes[1].node
    assert node is not None
    node.transactions.shards[0].stage = Stage.FAILED
    peers = Peers(cluster.network.at("asker"), "asker")
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    answer = await peers.at("node-1", CLIENT_PORT).ask(request, timeout_ms=10_000)
    peers.close()
    assert answer.error_code == ErrorCode.NONE
    assert [row.transactional_id for row in answer.transaction_states] == ["a"]
    await client.close()


def test_a_shard_that_has_failed_does_not_hide_the_others() -> None:
    settings = {"transaction.state.log.num.partitions": str(PARTITIONS)}
    SimulatedCluster(1, nodes=1, settings=settings).run(scenario)
