"""The broker that stands for the limit: it must serve real clients, keep what it says it keeps, and check CRCs."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest
from bench import contenders, java_clients
from bench.limit_broker import KEEPS_NOTHING, STORES, LimitBroker
from confluent_kafka import Consumer, Producer, TopicPartition

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient, frame

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CRC_AT = 17


@pytest.fixture(params=[KEEPS_NOTHING, STORES])
def either(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LimitBroker]:
    with LimitBroker(tmp_path, request.param) as started:
        started.start()
        yield started


@pytest.fixture
def storing(tmp_path: Path) -> Iterator[LimitBroker]:
    with LimitBroker(tmp_path, STORES) as started:
        started.start()
        yield started


def batch(count: int, value_bytes: int = 100) -> bytes:
    return batch_of(*(Record(b"%0*d" % (value_bytes, number), None, (), 1_700_000_000_000) for number in range(count)))


def produce(client: RawClient, topic: str, records: bytes, version: int, acks: int = -1) -> tuple[int, int]:
    data = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])]
    response = client.call(ProduceRequest(acks=acks, timeout_ms=1000, topic_data=data), version)
    (partition,) = response.responses[0].partition_responses
    return partition.error_code, partition.base_offset


def fetch(client: RawClient, topic: str, offset: int, version: int, *, max_bytes: int = 1 << 20) -> bytes:
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=max_bytes)
    topics = [FetchTopic(topic=topic, partitions=[wanted])]
    response = client.call(FetchRequest(max_wait_ms=1, min_bytes=1, max_bytes=1 << 20, topics=topics), version)
    (partition,) = response.responses[0].partitions
    assert partition.error_code == ErrorCode.NONE
    return bytes(partition.records or b"")


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_of_produce_is_acknowledged(either: LimitBroker, version: int) -> None:
    with contenders.topic(either, 1) as topic, RawClient.of(either) as client:
        assert produce(client, topic, batch(3), version) == (ErrorCode.NONE, 0)
        assert produce(client, topic, batch(2), version) == (ErrorCode.NONE, 3)
        assert contenders.ends(client, topic, 1) == [5]


# Three blocks at a time, then words, then bytes: sizes on either side of each step.
@pytest.mark.parametrize("value_bytes", [1, 8, 940, 3_000, 3_072, 3_100, 100_003])
def test_a_damaged_batch_is_refused(storing: LimitBroker, value_bytes: int) -> None:
    good = batch(1, value_bytes)
    damaged = bytearray(good)
    damaged[-1] ^= 1
    with contenders.topic(storing, 1) as topic, RawClient.of(storing) as client:
        assert produce(client, topic, bytes(damaged), 9)[0] == ErrorCode.CORRUPT_MESSAGE
        assert produce(client, topic, good, 9) == (ErrorCode.NONE, 0)
        (file,) = storing.data_directory.iterdir()
        assert file.read_bytes()[CRC_AT:] == good[CRC_AT:]


@pytest.mark.parametrize("version", range(4, 13))
def test_what_is_stored_is_read_back_from_the_batch_of_the_offset(storing: LimitBroker, version: int) -> None:
    with contenders.topic(storing, 1) as topic, RawClient.of(storing) as client:
        for _ in range(4):
            produce(client, topic, batch(10), 9)
        size = len(batch(10))
        stored = fetch(client, topic, 0, version)
        assert [struct.unpack_from(">q", stored, at)[0] for at in range(0, len(stored), size)] == [0, 10, 20, 30]
        assert fetch(client, topic, 25, version) == stored[2 * size :]
        assert fetch(client, topic, 0, version, max_bytes=2 * size + 1) == stored[: 2 * size]
        assert fetch(client, topic, 0, version, max_bytes=1) == stored[:size]
        assert fetch(client, topic, 40, version) == b""


def test_a_fetch_waits_for_records(storing: LimitBroker) -> None:
    with contenders.topic(storing, 1) as topic, RawClient.of(storing) as reader, RawClient.of(storing) as writer:
        topics = [
            FetchTopic(topic=topic, partitions=[FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)])
        ]
        reader.send(FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20, topics=topics), 12)
        produce(writer, topic, batch(1), 9)
        assert reader.receive().responses[0].partitions[0].records


def test_acks_0_gets_no_response(either: LimitBroker) -> None:
    data = [PartitionProduceData(index=0, records=batch(7))]
    with contenders.topic(either, 1) as topic, RawClient.of(either) as client:
        unanswered = TopicProduceData(name=topic, partition_data=data)
        client.send_bytes(frame(ProduceRequest(acks=0, timeout_ms=1, topic_data=[unanswered]), 9, correlation_id=7))
        assert produce(client, topic, batch(1), 9) == (ErrorCode.NONE, 7)


def test_a_request_that_ends_too_early_ends_the_connection(either: LimitBroker) -> None:
    with RawClient.of(either) as client:
        client.send_bytes(struct.pack(">ihhih", 12, 0, 9, 1, -1) + b"\0\xff")
        assert client.hung_up()


@pytest.mark.clients
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_writes_and_reads(storing: LimitBroker, codec: str) -> None:
    with contenders.topic(storing, 3) as topic:
        producer = Producer(
            {"bootstrap.servers": storing.bootstrap_servers, "enable.idempotence": True, "compression.type": codec}
        )
        sent = {b"%d" % number for number in range(2_000)}
        for value in sent:
            producer.produce(topic, value)
        assert producer.flush(60) == 0
        # No group to commit to: there is no coordinator.
        reads = {"bootstrap.servers": storing.bootstrap_servers, "group.id": "none", "enable.auto.commit": False}
        consumer = Consumer(reads | {"log_level": 0})
        consumer.assign([TopicPartition(topic, index, 0) for index in range(3)])
        seen: set[bytes] = set()
        while len(seen) < len(sent):
            for message in consumer.consume(1_000, 0.2):
                assert message.error() is None, message.error()
                seen.add(message.value())
        consumer.close()
        assert seen == sent


@pytest.mark.java
def test_kafkas_own_clients_write_and_read(storing: LimitBroker) -> None:
    with contenders.topic(storing) as topic:
        java_clients.produce(storing, topic, count=20_000, size=100, client_settings={"acks": "all"})
        assert java_clients.consume(storing, topic, 20_000) > 0
