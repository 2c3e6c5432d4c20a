"""A coordinator that cannot read its log says that it is none, until the log can be read."""

from __future__ import annotations

import pytest

from millstream.broker import coordinator
from millstream.broker.peers import Peers
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.groups import Committed, commit_offsets, committed_offsets
from millstream.protocol.errors import CorruptMessage, ErrorCode, StorageError
from millstream.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from millstream.runtime.shard import Stage
from millstream.testing.cluster import CLIENT_PORT, SimulatedCluster

PLACE = ("orders", 0)


async def answer_of(cluster: SimulatedCluster) -> ErrorCode:
    peers = Peers(cluster.network.at("asker"), "asker")
    group = OffsetFetchRequestGroup(group_id="mine", topics=None)
    answer = await peers.at("node-1", CLIENT_PORT).ask(OffsetFetchRequest(groups=[group]), version=8, timeout_ms=10_000)
    peers.close()
    return ErrorCode(answer.groups[0].error_code)


@pytest.mark.parametrize(
    "error", [CorruptMessage("a bit was flipped"), StorageError("EIO"), ValueError("a bad varint")]
)
def test_a_coordinator_that_cannot_read_its_log_is_none(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreadable(*_: object) -> int:
        raise error

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic(PLACE[0], partitions=1)])
        await commit_offsets(client, "mine", {PLACE: Committed(7)})
        await cluster.nodes[1].shut_down()
        with monkeypatch.context() as broken:
            broken.setattr(coordinator, "load_shard", unreadable)
            await cluster.nodes[1].restart()
            node = cluster.nodes[1].node
            assert node is not None
            await cluster.until(lambda: all(shard.stage is not Stage.LOADING for shard in node.groups.shards.values()))
            assert await answer_of(cluster) is ErrorCode.NOT_COORDINATOR
        await cluster.nodes[1].shut_down()
        await cluster.nodes[1].restart()
        assert await committed_offsets(client, "mine") == {PLACE: Committed(7)}
        await client.close()

    SimulatedCluster(1, nodes=1, settings={"offsets.topic.num.partitions": "1"}).run(scenario)
