"""One connection: requests start in order, waits overlap, answers leave in order, and nobody waits for a neighbour."""

from __future__ import annotations

import socket
import struct
from typing import TYPE_CHECKING, Any

import pytest

from millstream import Broker
from millstream.protocol.errors import ErrorCode
from millstream.protocol.frames import decode_response, encode_request
from millstream.protocol.messages.api_versions import ApiVersionsRequest
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.records.building import encode_batch

if TYPE_CHECKING:
    from collections.abc import Iterator

PRODUCE, FETCH, API_VERSIONS = 0, 1, 18


class Peer:
    """A client that sends what it is told and reads one frame at a time."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)

    def send(self, message: object, version: int, correlation_id: int) -> None:
        self.socket.sendall(encode_request(message, version, correlation_id, "test"))

    def read_frame(self) -> bytes:
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError("the broker closed the connection")
            data += more
        return data

    def answer(self, api_key: int, version: int) -> tuple[int, Any]:
        return decode_response(api_key, version, self.read_frame())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def peer(broker: Broker) -> Iterator[Peer]:
    connected = Peer(broker.port)
    yield connected
    connected.socket.close()


def produce(topic: str, value: bytes = b"v", acks: int = -1) -> ProduceRequest:
    batch = encode_batch([(None, value, [], 1_700_000_000_000)])
    return ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=batch)])],
    )


def fetch(topic: str, offset: int, max_wait_ms: int = 0, min_bytes: int = 1) -> FetchRequest:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1_000_000)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )


def test_answers_leave_in_request_order_though_a_long_poll_waits(broker: Broker, peer: Peer) -> None:
    broker.create_topic("in-order")
    peer.send(fetch("in-order", 0, max_wait_ms=20_000), 12, 1)
    peer.send(produce("in-order"), 9, 2)
    first_id, fetched = peer.answer(FETCH, 12)
    second_id, produced = peer.answer(PRODUCE, 9)
    assert (first_id, second_id) == (1, 2)
    assert produced.responses[0].partition_responses[0].base_offset == 0
    assert fetched.responses[0].partitions[0].records, "the append that came later woke the long poll"


def test_a_long_poll_ends_empty_at_its_deadline(broker: Broker, peer: Peer) -> None:
    broker.create_topic("nothing-comes")
    peer.send(fetch("nothing-comes", 0, max_wait_ms=50), 12, 7)
    correlation_id, fetched = peer.answer(FETCH, 12)
    assert correlation_id == 7
    assert fetched.responses[0].partitions[0].error_code == 0
    assert not fetched.responses[0].partitions[0].records


def test_a_long_poll_waits_for_min_bytes(broker: Broker, peer: Peer) -> None:
    broker.create_topic("a-lot")
    other = Peer(broker.port)
    peer.send(fetch("a-lot", 0, max_wait_ms=20_000, min_bytes=3000), 12, 1)
    for number in range(4):
        other.send(produce("a-lot", b"x" * 1000), 9, number)
        other.answer(PRODUCE, 9)
    _, fetched = peer.answer(FETCH, 12)
    assert len(fetched.responses[0].partitions[0].records) >= 3000
    other.socket.close()


def test_a_hundred_pipelined_appends_keep_their_order(broker: Broker, peer: Peer) -> None:
    broker.create_topic("pipelined")
    for number in range(100):
        peer.send(produce("pipelined", str(number).encode()), 9, number)
    offsets = []
    for number in range(100):
        correlation_id, response = peer.answer(PRODUCE, 9)
        assert correlation_id == number
        offsets.append(response.responses[0].partition_responses[0].base_offset)
    assert offsets == list(range(100))


def test_acks_0_is_not_answered(broker: Broker, peer: Peer) -> None:
    broker.create_topic("fire-and-forget")
    peer.send(produce("fire-and-forget", acks=0), 9, 1)
    peer.send(produce("fire-and-forget"), 9, 2)
    correlation_id, response = peer.answer(PRODUCE, 9)
    assert correlation_id == 2
    assert response.responses[0].partition_responses[0].base_offset == 1


def test_a_failing_acks_0_closes_the_connection(peer: Peer) -> None:
    peer.send(produce("no-such-topic", acks=0), 9, 1)
    with pytest.raises(EOFError):
        peer.read_frame()


def test_api_versions_of_the_future_are_answered_in_version_0(peer: Peer) -> None:
    header = struct.pack(">hhih", API_VERSIONS, 99, 5, 4) + b"test" + b"\x00whatever the future holds"
    peer.socket.sendall(struct.pack(">i", len(header)) + header)
    correlation_id, response = peer.answer(API_VERSIONS, 0)
    assert correlation_id == 5
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.max_version) for row in response.api_keys] == [(API_VERSIONS, 4)]


def test_an_unknown_api_costs_the_connection_and_nobody_else(broker: Broker, peer: Peer) -> None:
    other = Peer(broker.port)
    header = struct.pack(">hhih", 999, 0, 1, -1)
    peer.socket.sendall(struct.pack(">i", len(header)) + header)
    with pytest.raises(EOFError):
        peer.read_frame()
    other.send(ApiVersionsRequest(), 0, 1)
    assert other.answer(API_VERSIONS, 0)[1].error_code == 0
    other.socket.close()


def test_a_peer_that_leaves_during_a_long_poll_leaves_nothing_behind(broker: Broker) -> None:
    broker.create_topic("left-alone")
    leaving = Peer(broker.port)
    leaving.send(fetch("left-alone", 0, max_wait_ms=60_000), 12, 1)
    leaving.send(ApiVersionsRequest(), 0, 2)
    leaving.socket.close()
    staying = Peer(broker.port)
    staying.send(produce("left-alone"), 9, 1)
    assert staying.answer(PRODUCE, 9)[1].responses[0].partition_responses[0].error_code == 0
    staying.socket.close()


def test_a_client_over_its_quota_is_told_and_not_read_from() -> None:
    class Strict:
        """Everybody waits for a while after a Produce."""

        def throttle_ms(self, principal: str, api_key: int) -> int:
            return 60_000 if api_key == PRODUCE else 0

    with Broker() as broker:
        broker.create_topic("throttled")
        assert broker._node is not None
        broker._node.quotas = Strict()
        greedy, modest = Peer(broker.port), Peer(broker.port)
        greedy.send(produce("throttled"), 9, 1)
        assert greedy.answer(PRODUCE, 9)[1].throttle_time_ms == 60_000
        greedy.send(ApiVersionsRequest(), 0, 2)
        modest.send(ApiVersionsRequest(), 0, 1)
        assert modest.answer(API_VERSIONS, 0)[1].error_code == 0
        greedy.socket.settimeout(0.2)
        with pytest.raises(TimeoutError):
            greedy.read_frame()
        greedy.socket.close()
        modest.socket.close()
