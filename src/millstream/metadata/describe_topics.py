"""Metadata and DescribeTopicPartitions: where partitions are, as one client may see it.

`address` tells under which host and port a client reaches a broker; None where the broker has no listener of the kind
that the client came through. A partition whose leader cannot be reached says so; clients ask again.

What a principal may not describe is left out where everything was asked for, and refused where it was named.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.metadata.image import NO_LEADER
from millstream.metadata.names import INTERNAL_TOPICS, check_topic_name
from millstream.protocol.errors import ErrorCode, InvalidTopic
from millstream.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from millstream.protocol.messages.metadata_api import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from millstream.protocol.uuid import DIRECTORY_LOST, DIRECTORY_MIGRATING, DIRECTORY_UNASSIGNED, ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.metadata.image import Broker, MetadataImage, PartitionImage, TopicImage

    Address = tuple[str, int]

NOT_ASKED_FOR = -(2**31)
LISTENER_NOT_FOUND_SINCE = 6


@dataclass(frozen=True, slots=True)
class View:
    """The image as one client sees it."""

    image: MetadataImage
    address: Callable[[Broker], Address | None]
    may_describe: Callable[[str], bool] = lambda _: True
    operations: Callable[[str], int] = lambda _: NOT_ASKED_FOR
    """The bit field of what the principal may do with a topic."""

    def brokers(self) -> list[MetadataResponseBroker]:
        """Those that are active and that the client can reach."""
        return [
            MetadataResponseBroker(node_id=broker.id, host=address[0], port=address[1], rack=broker.rack)
            for broker in self.image.brokers.values()
            if not broker.fenced and (address := self.address(broker)) is not None
        ]


def asks_for_all(request: MetadataRequest, version: int) -> bool:
    """Version 0 had no null, so no topics meant all of them."""
    return not request.topics if version == 0 else request.topics is None


def describe_topics(
    view: View, request: MetadataRequest, version: int, refusals: Mapping[str, ErrorCode]
) -> list[MetadataResponseTopic]:
    """The topics of a Metadata answer. `refusals` are the reasons why topics by name could not be created."""
    if asks_for_all(request, version):
        topics = view.image.topics.by_name.values()
        return [_known(view, topic, version) for topic in topics if view.may_describe(topic.name)]
    # Who names a topic twice hears of it once.
    answers: dict[object, MetadataResponseTopic] = {}
    for entry in request.topics or ():
        answer = _by_name(view, entry.name, version, refusals) if _is_named(entry) else _by_id(view, entry, version)
        answers.setdefault((answer.name, answer.topic_id), answer)
    return list(answers.values())


def _is_named(entry: MetadataRequestTopic) -> bool:
    return entry.topic_id == ZERO_UUID


def _by_name(view: View, name: str | None, version: int, refusals: Mapping[str, ErrorCode]) -> MetadataResponseTopic:
    if name is None:
        return MetadataResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name="", partitions=[])
    if not view.may_describe(name):
        return _absent(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    topic = view.image.topics.by_name.get(name)
    if topic is not None:
        return _known(view, topic, version)
    answer = _absent(name, refusals.get(name) or unknown_topic(name))
    answer.topic_authorized_operations = view.operations(name)
    return answer


def _by_id(view: View, entry: MetadataRequestTopic, version: int) -> MetadataResponseTopic:
    topic = view.image.topics.by_id.get(entry.topic_id)
    if topic is not None and view.may_describe(topic.name):
        return _known(view, topic, version)
    code = ErrorCode.UNKNOWN_TOPIC_ID if topic is None else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return MetadataResponseTopic(error_code=code, name=None, topic_id=entry.topic_id, partitions=[])


def unknown_topic(name: str) -> ErrorCode:
    """Why there is no such topic: it does not exist, or never could."""
    try:
        check_topic_name(name)
    except InvalidTopic as refusal:
        return refusal.code
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _absent(name: str, code: ErrorCode) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=code, name=name, is_internal=name in INTERNAL_TOPICS, partitions=[])


def _known(view: View, topic: TopicImage, version: int) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=[_partition(view, number, partition, version) for number, partition in topic.partitions.items()],
        topic_authorized_operations=view.operations(topic.name),
    )


def _partition(view: View, number: int, partition: PartitionImage, version: int) -> MetadataResponsePartition:
    offline = offline_replicas(view.image, partition)
    code, leader = _leader(view, partition, version)
    replicas, isr = list(partition.replicas), list(partition.isr)
    if version == 0:
        # Before version 5 nothing said which replicas are offline: the first version left them out.
        if code is ErrorCode.NONE and offline:
            code = ErrorCode.REPLICA_NOT_AVAILABLE
        replicas = [replica for replica in replicas if replica not in offline]
        isr = [replica for replica in isr if replica not in offline]
    return MetadataResponsePartition(
        error_code=code,
        partition_index=number,
        leader_id=leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=offline,
    )


def _leader(view: View, partition: PartitionImage, version: int) -> tuple[ErrorCode, int]:
    broker = view.image.brokers.get(partition.leader)
    if broker is None or broker.fenced:
        return ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER
    if view.address(broker) is None:
        missing = version >= LISTENER_NOT_FOUND_SINCE
        return (ErrorCode.LISTENER_NOT_FOUND if missing else ErrorCode.LEADER_NOT_AVAILABLE), NO_LEADER
    return ErrorCode.NONE, partition.leader


def offline_replicas(image: MetadataImage, partition: PartitionImage) -> list[int]:
    """Replicas on brokers that are not active, or in directories that their broker no longer has."""
    offline = []
    for position, replica in enumerate(partition.replicas):
        broker = image.brokers.get(replica)
        if broker is None or broker.fenced:
            offline.append(replica)
            continue
        directory = partition.directories[position] if partition.directories else DIRECTORY_UNASSIGNED
        if directory in {DIRECTORY_UNASSIGNED, DIRECTORY_MIGRATING} or not broker.log_dirs:
            continue
        if directory == DIRECTORY_LOST or directory not in broker.log_dirs:
            offline.append(replica)
    return offline


def describe_topic_partitions(
    view: View, request: DescribeTopicPartitionsRequest, *, limit_max: int
) -> DescribeTopicPartitionsResponse:
    """Topics in the order of their names, as many partitions as asked for, and where to go on from there (KIP-966)."""
    cursor = request.cursor
    everything = not request.topics
    names = sorted(view.image.topics.by_name if everything else {topic.name for topic in request.topics})
    if cursor is not None:
        if cursor.partition_index < 0 or not (everything or cursor.topic_name in names):
            return _invalid_cursor(names)
        names = [name for name in names if name >= cursor.topic_name]
    room = max(1, min(request.response_partition_limit, limit_max))
    answers: list[DescribeTopicPartitionsResponseTopic] = []
    for name in names:
        if not view.may_describe(name):
            if not everything:
                answers.append(_unknown_partitions(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, NOT_ASKED_FOR))
            continue
        topic = view.image.topics.by_name.get(name)
        if topic is None:
            answers.append(_unknown_partitions(name, unknown_topic(name), view.operations(name)))
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        numbers = [number for number in sorted(topic.partitions) if number >= first]
        if numbers and room == 0:
            return _until(answers, Cursor(topic_name=name, partition_index=numbers[0]))
        answers.append(_partitions(view, topic, numbers[:room]))
        if len(numbers) > room:
            return _until(answers, Cursor(topic_name=name, partition_index=numbers[room]))
        room -= len(numbers)
    return _until(answers, None)


def _until(
    answers: list[DescribeTopicPartitionsResponseTopic], cursor: Cursor | None
) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=answers, next_cursor=cursor)


def _invalid_cursor(names: list[str]) -> DescribeTopicPartitionsResponse:
    answers = [_unknown_partitions(name, ErrorCode.INVALID_REQUEST, NOT_ASKED_FOR) for name in names]
    return DescribeTopicPartitionsResponse(topics=answers)


def _unknown_partitions(name: str, code: ErrorCode, operations: int) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=ZERO_UUID,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=operations,
    )


def _partitions(view: View, topic: TopicImage, numbers: list[int]) -> DescribeTopicPartitionsResponseTopic:
    partitions = []
    for number in numbers:
        partition = topic.partitions[number]
        code, leader = _leader(view, partition, LISTENER_NOT_FOUND_SINCE)
        partitions.append(
            DescribeTopicPartitionsResponsePartition(
                error_code=code,
                partition_index=number,
                leader_id=leader,
                leader_epoch=partition.leader_epoch,
                replica_nodes=list(partition.replicas),
                isr_nodes=list(partition.isr),
                eligible_leader_replicas=list(partition.elr),
                last_known_elr=list(partition.last_known_elr),
                offline_replicas=offline_replicas(view.image, partition),
            )
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=partitions,
        topic_authorized_operations=view.operations(topic.name),
    )
