"""Bugs that other brokers had (facts: reliability, by number), each as a test of a broker as a whole."""

from __future__ import annotations

import asyncio
import select
from typing import TYPE_CHECKING

import pytest
from tests.broker.replica_scene import Scene, play
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient, frame
from tests.support.waiting import wait_until

from millstream.broker.peers import PeerUnreachable
from millstream.embedded import Broker
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.api_versions import ApiVersionsRequest
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.security.operations import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

QUEUED_BYTES = 1 << 20
LARGE = 100_000


def produce(topic: str, value: bytes) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=batch_of(Record(value)))
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])])


def fetch(topic: str, offset: int = 0, max_wait_ms: int = 0, **replica: int | ReplicaState) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 28)
    wanted = FetchTopic(topic=topic, partitions=[partition])
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=1 << 28,
        session_epoch=-1,
        topics=[wanted],
        **replica,  # type: ignore[arg-type]
    )


@pytest.fixture(scope="module")
def embedded() -> Iterator[Broker]:
    with Broker(settings={"millstream.connection.queued.bytes.max": QUEUED_BYTES}) as running:
        yield running


@pytest.fixture
def client(embedded: Broker) -> Iterator[RawClient]:
    with RawClient("127.0.0.1", embedded.port) as connected:
        yield connected


def test_a_leader_that_stops_says_at_once_that_it_leads_no_longer() -> None:
    """Bug 12, KAFKA-14296: while it still serves, it takes no writes that nobody will have."""

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        outcomes: list[tuple[str, ErrorCode]] = []

        async def write() -> None:
            while True:
                value = f"value {len(outcomes)}"
                began = scene.cluster.loop.time()
                try:
                    code = ErrorCode((await scene.produce(1, value, timeout_ms=30_000)).error_code)
                except PeerUnreachable:
                    return
                assert scene.cluster.loop.time() - began < 2, "who writes is not kept waiting"
                outcomes.append((value, code))

        writing = asyncio.ensure_future(write())
        await scene.until(lambda: len(outcomes) > 5, "some records")
        # Slow, so that it takes a while between the loss of leadership and the end.
        for other in ("node-2", "node-3"):
            scene.cluster.network.slow_down("node-1", other, 0.1, one_way=True)
        await scene.cluster.nodes[1].shut_down()
        await writing
        codes = [code for _, code in outcomes]
        first = codes.index(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert set(codes[:first]) == {ErrorCode.NONE}
        assert set(codes[first:]) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        leader = scene.state(2).leader
        kept = scene.contents(leader)
        assert all(value.encode() in kept for value, code in outcomes if code is ErrorCode.NONE)
        # The first that was refused may have been under way; nothing that came later is anywhere.
        assert first <= scene.partition(leader).log.end_offset <= first + 1

    play(scenario)


def queued(embedded: Broker) -> int:
    """The bytes of requests that wait for their answers, on the connection that has the most."""
    connections = [each for listener in embedded._running.listeners for each in listener.connections]
    return max(each._queued_bytes for each in connections)


def test_who_pipelines_large_requests_is_no_longer_read_from(embedded: Broker, client: RawClient) -> None:
    """Bug 53, KAFKA-7639: a thousand large requests behind one that waits."""
    embedded.create_topic("staged")
    embedded.create_topic("idle")
    client.send(fetch("idle", max_wait_ms=60_000), 12)
    large = frame(produce("staged", bytes(LARGE)), 9, 2)
    waiting = memoryview(large * 1_000)
    client.socket.setblocking(False)
    taken = 0

    def is_stopped() -> bool:
        """Whether the kernel takes no more, and the broker holds as much as it may."""
        nonlocal taken
        while taken < len(waiting) and select.select([], [client.socket], [], 0.5)[1]:
            taken += client.socket.send(waiting[taken:])
        return taken == len(waiting) or queued(embedded) > QUEUED_BYTES

    wait_until(is_stopped, "the broker to stop reading", within_s=120)
    assert queued(embedded) <= QUEUED_BYTES + len(large)
    # The rest is in the kernel's buffers.
    assert taken < len(waiting) // 2
    with RawClient("127.0.0.1", embedded.port) as other:
        assert other.call(ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3).api_keys


@pytest.mark.parametrize(
    ("version", "says"), [(12, {"replica_id": 1}), (17, {"replica_state": ReplicaState(replica_id=1)})]
)
def test_who_is_no_broker_is_none_by_saying_so(
    embedded: Broker, client: RawClient, version: int, says: dict[str, int | ReplicaState]
) -> None:
    """Bug 55, CVE-2018-1288: a replica's id in a Fetch gives no right to read what is not committed, nor to be waited
    for."""

    class NoBroker:
        def allows(self, principal: str, host: str, operation: Operation, *resource: object) -> bool:
            return operation is not Operation.CLUSTER_ACTION

    node = embedded._running
    before, node.authorizer = node.authorizer, NoBroker()
    try:
        embedded.create_topic(f"secret-{version}")
        answer = client.call(fetch(f"secret-{version}", **says), version)
        assert (answer.error_code, answer.responses) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
    finally:
        node.authorizer = before


def test_requests_of_one_connection_never_share_their_bytes(embedded: Broker, client: RawClient) -> None:
    """Bug 59, CVE-2026-35554: a buffer that is used again too early brings one topic's records into another."""
    topics = ("black", "white")
    for topic in topics:
        embedded.create_topic(topic)
    requests = [(topics[number % 2], b"%s %d " % (topics[number % 2].encode(), number) * 400) for number in range(60)]
    for number, (topic, value) in enumerate(requests):
        data = frame(produce(topic, value), 9, number)
        # Cut anywhere, so that frames begin and end in the middle of what is received at once.
        middle = (number * 97) % len(data)
        client.send_bytes(data[:middle])
        client.send_bytes(data[middle:])
    for _ in requests:
        assert client.receive_frame() is not None
    with RawClient("127.0.0.1", embedded.port) as slow, RawClient("127.0.0.1", embedded.port) as quick:
        # Answers that wait to be read, while the same memory could be used for others.
        for topic in topics:
            slow.send(fetch(topic), 12)
        for topic, value in requests:
            assert quick.call(produce(topic, value), 9).responses[0].partition_responses[0].error_code == 0
        for topic, other in (topics, topics[::-1]):
            (answered,) = slow.receive().responses
            records = bytes(answered.partitions[0].records)
            assert all(value in records for name, value in requests if name == topic)
            assert other.encode() not in records
