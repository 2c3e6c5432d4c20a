"""Conversations about the cluster, where partitions are, and what they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.batches import Record, batch_of

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages import describe_producers as producers
from millstream.protocol.messages import describe_topic_partitions as partitions
from millstream.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from millstream.protocol.messages.describe_cluster import DescribeClusterRequest
from millstream.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from millstream.protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.broker.handlers.conversations import Talk

TIMESTAMPS_MS = (1000, 5000, 3000, 5000, 4000)


def producer_id(talk: Talk) -> InitProducerIdResponse:
    """A fresh one; Apache Kafka's first answer may be that it is still loading."""
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)

    def given() -> InitProducerIdResponse | None:
        answer = talk.client.call(request, 4)
        return answer if answer.error_code == ErrorCode.NONE else None

    return talk.until(given, "a producer id")


def write(talk: Talk, short: str) -> None:
    """Five batches of one record into partition 0, the first with a producer id of its own."""
    answer = producer_id(talk)
    for sequence, timestamp_ms in enumerate(TIMESTAMPS_MS):
        records = batch_of(
            Record(b"value", timestamp_ms=timestamp_ms),
            producer_id=answer.producer_id,
            producer_epoch=answer.producer_epoch,
            base_sequence=sequence,
        )
        data = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name=talk.name(short), partition_data=[data])
        request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[topic])

        def written(request: ProduceRequest = request) -> bool:
            (answer,) = talk.client.call(request, 9).responses[0].partition_responses
            assert answer.error_code in {ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER}, answer
            return bool(answer.error_code == ErrorCode.NONE)

        # A broker of Apache Kafka's may tell of a topic a moment before it leads it.
        talk.until(written, "a record to be taken")


def metadata(talk: Talk) -> None:
    ids = {"a": talk.topic("a", 3), "b": talk.topic("b", 2)}

    def ask(label, topics, version=13, *, operations=True):
        wanted = [
            MetadataRequestTopic(name=None if short is None else talk.name(short), topic_id=topic_id)
            for short, topic_id in topics
        ]
        request = MetadataRequest(
            topics=wanted,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=operations and version >= 8,
            include_cluster_authorized_operations=operations and 8 <= version <= 10,
        )
        talk.ask(label, request, version)

    for version in range(14):
        # The first versions cannot say that they don't want a topic to be made.
        unknown = [("nope", ZERO_UUID)] if version >= 4 else []
        ask(f"version {version}", [("a", ZERO_UUID), *unknown], version)
    ask("without operations", [("a", ZERO_UUID)], operations=False)
    for version in (1, 8, 12):
        ask(f"no topics, version {version}", [], version)
    ask("bad name", [("a b", ZERO_UUID)])
    ask("by id", [(None, ids["a"])], 12)
    ask("by unknown id", [(None, Uuid(b"y" * 16))], 12)
    ask("by name and id", [("a", ids["a"])], 12)
    ask("by nothing", [(None, ZERO_UUID)], 12)
    ask("twice", [("a", ZERO_UUID), ("a", ZERO_UUID)], 12)
    for version in (10, 11):
        ask(f"by id too early, version {version}", [(None, ids["a"])], version)
        ask(f"by name and id too early, version {version}", [("a", ids["a"])], version)


def topics_made_on_demand(talk: Talk) -> None:
    def ask(short, version, *, wish=True):
        request = MetadataRequest(topics=[MetadataRequestTopic(name=talk.name(short))], allow_auto_topic_creation=wish)
        return talk.client.call(request, version).topics[0]

    assert ask("not-wanted", 12, wish=False).error_code == 3
    for version in (0, 3, 4, 13):
        short = f"wanted-{version}"
        found = talk.until(
            lambda short=short, version=version: (
                answer if (answer := ask(short, version)).error_code == 0 and answer.partitions else None
            ),
            "a topic to come to be",
        )
        talk.heard[f"version {version}"] = len(found.partitions)
    talk.heard["bad name"] = ask("wanted ", 12).error_code
    ask("x.y", 12)
    talk.until(lambda: ask("x.y", 12).error_code == 0, "x.y")
    talk.heard["not wanted"] = ask("not-wanted", 12, wish=False).error_code


def describe_cluster(talk: Talk) -> None:
    for version in range(3):
        for endpoint_type in (1, 2, 0):
            request = DescribeClusterRequest(
                include_cluster_authorized_operations=True,
                endpoint_type=endpoint_type,
                include_fenced_brokers=version == 2,
            )
            talk.ask(f"type {endpoint_type}, version {version}", request, version)


def describe_topic_partitions(talk: Talk) -> None:
    talk.topic("a", 3)
    talk.topic("b", 2)

    def ask(label, shorts, limit=2000, cursor=None):
        request = partitions.DescribeTopicPartitionsRequest(
            topics=[partitions.TopicRequest(name=talk.name(short)) for short in shorts],
            response_partition_limit=limit,
            cursor=cursor and partitions.Cursor(topic_name=talk.name(cursor[0]), partition_index=cursor[1]),
        )
        talk.ask(label, request, 0)

    ask("both", ["b", "a"])
    for limit in (-1, 0, 1, 2, 3, 4, 5):
        ask(f"{limit} of both", ["a", "b"], limit)
    ask("from the middle", ["a", "b"], 2, ("a", 2))
    ask("from beyond", ["a", "b"], 2, ("a", 99))
    ask("unknown", ["nope", "a"])
    ask("bad name", ["a b"])
    ask("twice", ["a", "a"])
    ask("cursor elsewhere", ["a"], 2, ("b", 1))
    ask("negative cursor", ["a", "b"], 2, ("b", -1))


def describe_quorum(talk: Talk) -> None:
    for version in range(3):
        answer = talk.client.call(_quorum("__cluster_metadata", 0), version)
        (partition,) = answer.topics[0].partitions
        talk.heard[f"version {version}"] = [
            answer.error_code,
            partition.error_code,
            partition.leader_id,
            [voter.replica_id for voter in partition.current_voters],
            partition.high_watermark == partition.current_voters[0].log_end_offset,
            [node.node_id for node in answer.nodes],
        ]
    talk.ask("a topic", _quorum(talk.name("nope"), 0), 2)
    talk.ask("another partition", _quorum("__cluster_metadata", 1), 2)
    talk.ask("nothing", DescribeQuorumRequest(topics=[]), 2)
    # Apache Kafka tells of nodes only where it tells of a quorum; we do for the log of the quorum, whichever partition.
    del talk.heard["another partition"]["nodes"]


def _quorum(topic: str, partition: int) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(
        topics=[TopicData(topic_name=topic, partitions=[PartitionData(partition_index=partition)])]
    )


def list_offsets(talk: Talk) -> None:
    talk.topic("t", 2)
    write(talk, "t")

    def ask(label, timestamp, version=11, *, index=0, epoch=-1, short="t", replica_id=-1, isolation=0):
        wanted = ListOffsetsPartition(partition_index=index, current_leader_epoch=epoch, timestamp=timestamp)
        topic = ListOffsetsTopic(name=talk.name(short), partitions=[wanted])
        request = ListOffsetsRequest(replica_id=replica_id, isolation_level=isolation, topics=[topic], timeout_ms=1000)
        talk.ask(label, request, version)

    for version in range(1, 12):
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, 1000, 1001, 4500, 5000, 5001):
            ask(f"{timestamp}, version {version}", timestamp, version)
    for timestamp in (-1, -2, -3, -4, -5, -6, 0):
        ask(f"{timestamp} of an empty partition", timestamp, index=1)
    ask("unknown partition", -1, index=5)
    ask("unknown topic", -1, short="nope")
    for epoch in (0, 1, -5):
        ask(f"in epoch {epoch}", -1, epoch=epoch)
    for replica_id in (1, -2, 7):
        ask(f"as replica {replica_id}", -1, replica_id=replica_id)
    ask("committed", -1, isolation=1)
    ask("with no isolation that exists", -1, isolation=9)
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp) for timestamp in (-1, -2)]
    topic = ListOffsetsTopic(name=talk.name("t"), partitions=wanted)
    talk.ask("twice", ListOffsetsRequest(replica_id=-1, topics=[topic]), 11)


def offset_for_leader_epoch(talk: Talk) -> None:
    talk.topic("t", 2)
    write(talk, "t")

    def ask(label, epoch, current=-1, *, index=0, short="t", version=4):
        wanted = OffsetForLeaderPartition(partition=index, current_leader_epoch=current, leader_epoch=epoch)
        topic = OffsetForLeaderTopic(topic=talk.name(short), partitions=[wanted])
        talk.ask(label, OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic]), version)

    for version in (2, 3, 4):
        ask(f"the latest, version {version}", 0, version=version)
    ask("the future", 1)
    ask("none", -1)
    for current in (0, 1, -2):
        ask(f"current {current}", 0, current)
    ask("unknown partition", 0, index=9)
    ask("unknown topic", 0, short="nope")
    ask("empty partition", 0, index=1)


def delete_records(talk: Talk) -> None:
    talk.topic("t", 2)
    write(talk, "t")

    def delete(label, *offsets, short="t", version=2):
        wanted = [DeleteRecordsPartition(partition_index=index, offset=offset) for index, offset in offsets]
        topic = DeleteRecordsTopic(name=talk.name(short), partitions=wanted)
        talk.ask(label, DeleteRecordsRequest(topics=[topic], timeout_ms=1000), version)

    delete("some", (0, 2), version=0)
    delete("fewer", (0, 1), version=1)
    delete("too many", (0, 99))
    delete("a negative offset", (0, -2))
    delete("all", (0, -1), (1, 0), (7, 1))
    delete("unknown topic", (0, 0), short="nope")
    for timestamp in (-2, 0):
        wanted = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = ListOffsetsTopic(name=talk.name("t"), partitions=[wanted])
        talk.ask(f"then {timestamp}", ListOffsetsRequest(replica_id=-1, topics=[topic]), 11)


def describe_producers(talk: Talk) -> None:
    talk.topic("t", 2)
    write(talk, "t")
    asked = [
        producers.TopicRequest(name=talk.name("t"), partition_indexes=[0, 1, 9]),
        producers.TopicRequest(name=talk.name("nope"), partition_indexes=[0]),
    ]
    talk.ask("producers", producers.DescribeProducersRequest(topics=asked), 0)
    for topic in talk.heard["producers"]["topics"]:
        for partition in topic["partitions"]:
            for producer in partition["active_producers"]:
                del producer["producer_id"]


def describe_log_dirs(talk: Talk) -> None:
    talk.topic("t", 2)
    write(talk, "t")
    asked = [
        DescribableLogDirTopic(topic=talk.name("t"), partitions=[0, 1, 9]),
        DescribableLogDirTopic(topic=talk.name("nope"), partitions=[0]),
    ]
    for version in range(1, 6):
        answer = talk.ask(f"version {version}", DescribeLogDirsRequest(topics=asked), version)
        has_space = {result.total_bytes > 0 and result.usable_bytes > 0 for result in answer.results}
        talk.heard[f"space, version {version}"] = sorted(has_space)
    talk.ask("no topics", DescribeLogDirsRequest(topics=[]), 4)


def init_producer_id(talk: Talk) -> None:
    def ask(label, transactional_id=None, producer_id=-1, epoch=-1, version=5):
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=1000,
            producer_id=producer_id,
            producer_epoch=epoch,
        )
        answer = talk.client.call(request, version)
        talk.heard[label] = [answer.error_code, answer.producer_epoch, answer.producer_id >= 0]

    producer_id(talk)
    for version in range(6):
        ask(f"new, version {version}", version=version)
    ask("empty transactional id", "")
    ask("an id without an epoch", None, 5)
    ask("an epoch without an id", None, -1, 5)
    ask("an id and an epoch", None, 5, 5)


def find_coordinator(talk: Talk) -> None:
    for version in (1, 2, 3):
        talk.ask(f"unknown kind, version {version}", FindCoordinatorRequest(key="g", key_type=9), version)
    for version in (4, 5, 6):
        many = FindCoordinatorRequest(key_type=9, coordinator_keys=["g", "h"])
        talk.ask(f"unknown kind, version {version}", many, version)
    for version in (4, 5):
        early = FindCoordinatorRequest(key_type=2, coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAA:0"])
        talk.ask(f"share state too early, version {version}", early, version)


DATA: tuple[Callable[[Talk], None], ...] = (
    metadata,
    topics_made_on_demand,
    describe_cluster,
    describe_topic_partitions,
    describe_quorum,
    list_offsets,
    offset_for_leader_epoch,
    delete_records,
    describe_producers,
    describe_log_dirs,
    init_producer_id,
    find_coordinator,
)
