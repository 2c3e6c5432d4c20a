"""A broker that is cut off from the cluster, and not from clients, tells none of them anything final."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.coordinator import java_hash
from millstream.broker.handlers.offset_fetch import DOUBT_S
from millstream.broker.peers import Peers, PeerUnreachable
from millstream.broker.touch import Touch
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.groups import Committed, commit_offsets
from millstream.client.produce import init_producer_id
from millstream.client.transactions import Transaction, add_partitions
from millstream.metadata.names import TRANSACTIONS_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from millstream.protocol.messages.end_txn import EndTxnRequest
from millstream.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.records.building import encode_batch
from millstream.testing.cluster import CLIENT_PORT, SimulatedCluster
from millstream.testing.simulation import base_settings
from millstream.transactions.transaction import State

if TYPE_CHECKING:
    from millstream.testing.simulated_node import SimulatedNode

PLACE = ("written-to", 0)
# The newest version that librdkafka speaks: it adds partitions itself, and does not know TRANSACTION_ABORTABLE.
PRODUCE_VERSION, ADD_VERSION, END_VERSION, OFFSETS_VERSION = 10, 3, 3, 8
SETTINGS = {
    **base_settings(3),
    "transaction.state.log.num.partitions": "1",
    # One for each broker.
    "offsets.topic.num.partitions": "3",
    "auto.leader.rebalance.enable": "false",
}


def _has_ended(at: SimulatedNode) -> bool:
    assert at.node is not None
    return at.node.transactions.shards[0].machine.transactions["mine"].state is State.COMPLETE_COMMIT


def group_of(at: SimulatedNode) -> str | None:
    """The name of a group that this node coordinates."""
    assert at.node is not None
    led = at.node.groups.shards
    return next((name for name in "abcdef" if java_hash(name) % 3 in led), None)


def leader_by(at: SimulatedNode, topic: str) -> int:
    assert at.node is not None
    found = at.node.image.topics.by_name.get(topic)
    return -1 if found is None else found.partitions[0].leader


class Producer:
    """A transactional producer that knows whom it asks."""

    def __init__(self, cluster: SimulatedCluster, transaction: Transaction) -> None:
        self._transaction = transaction
        self.peers = Peers(cluster.network.at("producer"), "producer")

    async def ask(self, at: SimulatedNode, request: object, version: int) -> Any:
        return await self.peers.at(at.host, CLIENT_PORT).ask(request, version=version, timeout_ms=10_000)

    async def write(self, at: SimulatedNode) -> ErrorCode:
        """The first record of the transaction."""
        producer = self._transaction.producer
        batch = encode_batch(
            [(b"key", b"value", (), 0)],
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            base_sequence=0,
            transactional=True,
        )
        return await self._produce(at, batch, self._transaction.id)

    async def write_outside(self, at: SimulatedNode, sequence: int) -> ErrorCode:
        """A record of an idempotent producer."""
        batch = encode_batch([(b"key", b"value", (), 0)], producer_id=4711, producer_epoch=0, base_sequence=sequence)
        return await self._produce(at, batch, None)

    async def _produce(self, at: SimulatedNode, batch: bytearray, transactional_id: str | None) -> ErrorCode:
        data = PartitionProduceData(index=PLACE[1], records=bytes(batch))
        request = ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=2_000,
            topic_data=[TopicProduceData(name=PLACE[0], partition_data=[data])],
        )
        answer = await self.ask(at, request, PRODUCE_VERSION)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def commit(self, at: SimulatedNode) -> ErrorCode:
        identity = self._transaction.producer
        request = EndTxnRequest(
            transactional_id=self._transaction.id,
            producer_id=identity.id,
            producer_epoch=identity.epoch,
            committed=True,
        )
        return ErrorCode((await self.ask(at, request, END_VERSION)).error_code)

    async def committed_offsets(self, at: SimulatedNode, name: str, *, require_stable: bool) -> ErrorCode:
        group = OffsetFetchRequestGroup(group_id=name, topics=None)
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
        return ErrorCode((await self.ask(at, request, OFFSETS_VERSION)).groups[0].error_code)

    async def add_with_epoch(self, at: SimulatedNode, epoch: int) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transaction.id,
            v3_and_below_producer_id=self._transaction.producer.id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=PLACE[0], partitions=[PLACE[1]])],
        )
        answer = await self.ask(at, request, ADD_VERSION)
        return ErrorCode(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)


async def scenario(cluster: SimulatedCluster) -> None:
    await cluster.start()
    client = cluster.client()
    identity = await init_producer_id(client, transactional_id="mine", transaction_timeout_ms=60_000)
    transaction = Transaction("mine", identity, implicit=False)
    alone = cluster.nodes[leader_by(cluster.nodes[1], TRANSACTIONS_TOPIC)]
    others = [at for at in cluster.nodes.values() if at is not alone]
    await create_topics(client, [NewTopic(PLACE[0], assignments={0: (alone.id, *(at.id for at in others))})])
    await cluster.until(lambda: all(leader_by(at, PLACE[0]) == alone.id for at in cluster.nodes.values()))
    await commit_offsets(client, "any", {PLACE: Committed(0)})
    await cluster.until(lambda: group_of(alone) is not None, what="it coordinates a group")
    producer = Producer(cluster, transaction)
    assert await producer.write_outside(alone, 0) is ErrorCode.NONE
    await add_partitions(client, transaction, [PLACE])
    assert await producer.commit(alone) is ErrorCode.NONE
    await cluster.until(lambda: _has_ended(alone), what="the first transaction is complete")

    cluster.network.block([alone.host], [at.host for at in others])
    await cluster.until(
        lambda: all(
            leader_by(at, topic) not in (-1, alone.id) for at in others for topic in (TRANSACTIONS_TOPIC, PLACE[0])
        ),
        what="another one leads",
    )
    assert leader_by(alone, TRANSACTIONS_TOPIC) == leader_by(alone, PLACE[0]) == alone.id
    elsewhere = cluster.client(options={"bootstrap.servers": ",".join(f"{at.host}:{CLIENT_PORT}" for at in others)})
    await add_partitions(elsewhere, transaction, [PLACE])
    # A producer that was not acknowledged is hung up on: it would ask this broker who leads, and hear the old answer.
    with pytest.raises(PeerUnreachable, match="hung up"):
        await producer.write_outside(alone, 1)
    # By what the old coordinator knows the partition is no part of the transaction, and epoch 9 that of a stranger.
    assert await producer.write(alone) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert await producer.add_with_epoch(alone, 9) is ErrorCode.NOT_COORDINATOR
    # The last one that it knows was committed: that must not be taken for the end of the one that is open.
    assert await producer.commit(alone) is ErrorCode.NOT_COORDINATOR
    group = group_of(alone)
    assert group is not None
    # Offsets that were committed in transactions count; a consumer that only wants to go on is told what is known.
    assert await producer.committed_offsets(alone, group, require_stable=True) is ErrorCode.NOT_COORDINATOR
    assert await producer.committed_offsets(alone, group, require_stable=False) is ErrorCode.NONE
    # Nor does it know what came before the record with this number.
    assert await producer.write_outside(alone, 5) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    coordinator = cluster.nodes[leader_by(others[0], TRANSACTIONS_TOPIC)]
    assert await producer.add_with_epoch(coordinator, 9) is ErrorCode.PRODUCER_FENCED
    leader = cluster.nodes[leader_by(others[0], PLACE[0])]
    assert await producer.write_outside(leader, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    cluster.network.heal()
    await cluster.until(lambda: leader_by(alone, PLACE[0]) != alone.id, what="it has heard of its successor")
    assert await producer.write(leader) is ErrorCode.NONE
    assert await producer.write(alone) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    producer.peers.close()
    await client.close()
    await elsewhere.close()


def test_a_coordinator_that_was_replaced_without_knowing_sends_clients_elsewhere() -> None:
    for seed in range(3):
        SimulatedCluster(seed, nodes=3, settings=SETTINGS).run(scenario)


async def doubt(cluster: SimulatedCluster, patched: pytest.MonkeyPatch) -> None:
    """Heartbeats are acknowledged late: the coordinator cannot be certain for a while, and coordinates all the time."""
    await cluster.start()
    client = cluster.client()
    identity = await init_producer_id(client, transactional_id="mine", transaction_timeout_ms=60_000)
    await create_topics(client, [NewTopic(PLACE[0], 1, 3)])
    await commit_offsets(client, "any", {PLACE: Committed(0)})
    at = cluster.nodes[1]
    await cluster.until(lambda: group_of(at) is not None, what="it coordinates a group")
    name = group_of(at)
    assert name is not None
    producer = Producer(cluster, Transaction("mine", identity, implicit=False))
    loop = asyncio.get_running_loop()
    with patched.context() as late:
        late.setattr(Touch, "is_certain", property(lambda _: False))
        asked_s = loop.time()
        asking = loop.create_task(producer.committed_offsets(at, name, require_stable=True))
        await cluster.until(lambda: loop.time() > asked_s + DOUBT_S / 2, what="half of its patience")
        assert not asking.done()
    assert await asking is ErrorCode.NONE
    assert loop.time() < asked_s + DOUBT_S
    with patched.context() as late:
        late.setattr(Touch, "is_certain", property(lambda _: False))
        asked_s = loop.time()
        assert await producer.committed_offsets(at, name, require_stable=False) is ErrorCode.NONE
        assert loop.time() < asked_s + 1
        assert await producer.committed_offsets(at, name, require_stable=True) is ErrorCode.NOT_COORDINATOR
        assert loop.time() >= asked_s + DOUBT_S
    producer.peers.close()
    await client.close()


def test_offsets_wait_for_a_coordinator_that_is_in_doubt(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer of librdkafka's that hears NOT_COORDINATOR asks for its offsets never again, and reads nothing."""
    SimulatedCluster(1, nodes=3, settings=SETTINGS).run(partial(doubt, patched=monkeypatch))
