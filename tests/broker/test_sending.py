"""Large answers go from the log's files to the socket: whole and in order, however slowly they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.support.batches import Record, batch_of
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

from millstream import Broker
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from millstream.protocol.messages.metadata_api import MetadataRequest
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.uuid import ZERO_UUID
from millstream.records.batch import read_header

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTITIONS, BATCHES = 3, 8
VALUE = bytes(range(256)) * 3600  # nearly as large as a batch may be


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Broker]:
    with Broker(data_dir=tmp_path / "data") as broker:
        yield broker


def client_of(broker: Broker) -> RawClient:
    host, port = broker.bootstrap_servers.split(":")
    return RawClient(host, int(port))


def fill(client: RawClient, topic: str) -> None:
    wanted = CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1, assignments=[], configs=[])
    assert client.call(CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 5).topics[0].error_code == 0
    for number in range(BATCHES):
        for partition in range(PARTITIONS):
            batch = batch_of(Record(VALUE + b"%d of %d" % (number, partition), None, (), 1))
            data = [PartitionProduceData(index=partition, records=batch)]
            topics = [TopicProduceData(name=topic, partition_data=data)]
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
            answer = client.call(request, 9)
            assert answer.responses[0].partition_responses[0].error_code == 0


def fetch_of(topic: str) -> FetchRequest:
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 30) for index in range(PARTITIONS)
    ]
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 30,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=partitions)],
    )


def is_whole(answer: object) -> bool:
    """Every partition brought all its batches, and each ends with what was written into it."""
    (topic,) = answer.responses  # type: ignore[attr-defined]
    for partition in topic.partitions:
        position, number = 0, 0
        while position < len(partition.records):
            header = read_header(partition.records, position)
            record = bytes(partition.records[position : position + header.size])
            assert VALUE + b"%d of %d" % (number, partition.partition_index) in record
            position, number = position + header.size, number + 1
        if number != BATCHES:
            return False
    return len(topic.partitions) == PARTITIONS


def test_a_large_answer_is_whole_and_what_follows_it_is_in_order(embedded: Broker) -> None:
    with client_of(embedded) as client:
        fill(client, "large")
        client.send(fetch_of("large"), 12)
        client.send(MetadataRequest(topics=[]), 9)
        client.send(fetch_of("large"), 12)
        assert is_whole(client.receive())
        assert client.receive().brokers
        assert is_whole(client.receive())


def test_who_reads_late_gets_it_all_though_the_topic_is_deleted_meanwhile(embedded: Broker, tmp_path: Path) -> None:
    with client_of(embedded) as slow, client_of(embedded) as other:
        fill(other, "late")
        slow.send(fetch_of("late"), 12)
        # The answer is far larger than the socket takes: most of it waits in the file.
        other.call(MetadataRequest(topics=[]), 9)
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="late", topic_id=ZERO_UUID)], timeout_ms=30_000)
        assert other.call(gone, 6).responses[0].error_code == 0
        wait_until(lambda: not list((tmp_path / "data").glob("late-[0-9]")), "the folders to be renamed", within_s=30)
        assert is_whole(slow.receive())


def test_who_never_reads_costs_no_memory_and_goes_without_harm(embedded: Broker) -> None:
    with client_of(embedded) as other:
        fill(other, "unread")
        with client_of(embedded) as silent:
            for _ in range(20):
                silent.send(fetch_of("unread"), 12)
            assert is_whole(other.call(fetch_of("unread"), 12))
        assert is_whole(other.call(fetch_of("unread"), 12))
