"""Topics: list, describe, create, delete, more partitions, fewer records."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.client.client import CONTROLLER, LeaderOf
from millstream.client.errors import NotSupported, Refusal, partition_subject, refuse, topic_subject
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from millstream.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from millstream.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from millstream.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from millstream.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from millstream.protocol.uuid import ZERO_UUID, Uuid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from millstream.client.client import Client
    from millstream.client.metadata import Topic

ADMIN_TIMEOUT_MS = 30_000
# A topic that is named and does not exist will not come by waiting.
MISSING = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. -1 takes the broker's default; `assignments` names the replicas of each partition instead."""

    name: str
    partitions: int = -1
    replicas: int = -1
    configs: Mapping[str, str | None] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """What the broker says of a new topic; -1 where it is too old to tell."""

    name: str
    id: Uuid
    partitions: int
    replicas: int


@dataclass(frozen=True, slots=True)
class DescribedPartition:
    """A partition with what only DescribeTopicPartitions tells (KIP-966); None from older brokers."""

    index: int
    leader_id: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class DescribedTopic:
    """A topic in detail."""

    name: str
    id: Uuid
    internal: bool
    partitions: tuple[DescribedPartition, ...]


async def list_topics(client: Client) -> list[Topic]:
    """Every topic that the client may see, by name."""
    return await client.retrying(client.metadata.all_topics)


async def describe_topics(client: Client, names: Sequence[str]) -> dict[str, DescribedTopic | Refusal]:
    """The named topics in detail, in the order of the names."""
    try:
        return await client.retrying(lambda: _describe(client, names))
    except NotSupported:
        found = await client.retrying(lambda: client.metadata.topics(names))
        return {
            name: outcome if isinstance(outcome, Refusal) else _from_metadata(outcome)
            for name, outcome in ((name, found[name]) for name in names)
        }


async def _describe(client: Client, names: Sequence[str]) -> dict[str, DescribedTopic | Refusal]:
    partitions: dict[str, list[DescribedPartition]] = {}
    outcomes: dict[str, DescribedTopic | Refusal] = {}
    asked = [TopicRequest(name=name) for name in names]
    cursor = None
    while True:
        response: DescribeTopicPartitionsResponse = await client.call(
            DescribeTopicPartitionsRequest(topics=asked, cursor=cursor)
        )
        for topic in response.topics:
            name = topic.name or ""
            if topic.error_code:
                outcomes[name] = Refusal(topic.error_code, subject=topic_subject(name))
                continue
            so_far = partitions.setdefault(name, [])
            so_far += [
                DescribedPartition(
                    index=partition.partition_index,
                    leader_id=partition.leader_id,
                    replicas=tuple(partition.replica_nodes),
                    isr=tuple(partition.isr_nodes),
                    offline=tuple(partition.offline_replicas),
                    eligible_leaders=tuple(partition.eligible_leader_replicas or ()),
                    last_known_eligible=tuple(partition.last_known_elr or ()),
                )
                for partition in topic.partitions
            ]
            outcomes[name] = DescribedTopic(name, Uuid(topic.topic_id), topic.is_internal, tuple(so_far))
        cursor = response.next_cursor
        if cursor is None:
            break
        # The cursor's own topic and those behind it: the broker goes on by name.
        asked = [topic for topic in asked if topic.name >= cursor.topic_name]
    missing = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return {name: outcomes.get(name, missing) for name in names}


def _from_metadata(topic: Topic) -> DescribedTopic:
    return DescribedTopic(
        topic.name,
        topic.id,
        topic.internal,
        tuple(
            DescribedPartition(
                index=partition.index,
                leader_id=partition.leader_id,
                replicas=partition.replicas,
                isr=partition.isr,
                offline=partition.offline,
            )
            for partition in topic.partitions
        ),
    )


async def create_topics(
    client: Client, topics: Sequence[NewTopic], *, validate_only: bool = False, timeout_ms: int = ADMIN_TIMEOUT_MS
) -> dict[str, CreatedTopic | Refusal]:
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(
                name=topic.name,
                num_partitions=-1 if topic.assignments else topic.partitions,
                replication_factor=-1 if topic.assignments else topic.replicas,
                assignments=[
                    CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                    for index, replicas in sorted(topic.assignments.items())
                ],
                configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
            )
            for topic in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )
    # Defaults (-1) for partitions and replicas exist from version 4 on (KIP-464).
    defaults = any(not topic.assignments and -1 in (topic.partitions, topic.replicas) for topic in topics)

    async def attempt() -> dict[str, CreatedTopic | Refusal]:
        response: CreateTopicsResponse = await client.call(
            request, node=CONTROLLER, timeout_ms=timeout_ms, at_least=4 if defaults else 0
        )
        _raise_not_controller(result.error_code for result in response.topics)
        return {
            result.name: Refusal(result.error_code, result.error_message, subject=topic_subject(result.name))
            if result.error_code
            else CreatedTopic(result.name, Uuid(result.topic_id), result.num_partitions, result.replication_factor)
            for result in response.topics
        }

    return await client.retrying(attempt)


async def delete_topics(
    client: Client, names: Sequence[str], *, timeout_ms: int = ADMIN_TIMEOUT_MS
) -> dict[str, Refusal | None]:
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names],
        topic_names=list(names),
        timeout_ms=timeout_ms,
    )

    async def attempt() -> dict[str, Refusal | None]:
        response: DeleteTopicsResponse = await client.call(request, node=CONTROLLER, timeout_ms=timeout_ms)
        _raise_not_controller(result.error_code for result in response.responses)
        outcomes: dict[str, Refusal | None] = {}
        for result in response.responses:
            name = result.name or ""
            client.metadata.forget(name)
            outcomes[name] = (
                Refusal(result.error_code, result.error_message, subject=topic_subject(name))
                if result.error_code
                else None
            )
        return outcomes

    return await client.retrying(attempt)


async def create_partitions(
    client: Client,
    counts: Mapping[str, int],
    *,
    assignments: Mapping[str, Sequence[Sequence[int]]] | None = None,
    validate_only: bool = False,
    timeout_ms: int = ADMIN_TIMEOUT_MS,
) -> dict[str, Refusal | None]:
    """Raise topics to these numbers of partitions; `assignments` names the replicas of the new ones."""
    placed = assignments or {}
    request = CreatePartitionsRequest(
        topics=[
            CreatePartitionsTopic(
                name=name,
                count=count,
                assignments=[CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in placed[name]]
                if name in placed
                else None,
            )
            for name, count in counts.items()
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )

    async def attempt() -> dict[str, Refusal | None]:
        response: CreatePartitionsResponse = await client.call(request, node=CONTROLLER, timeout_ms=timeout_ms)
        _raise_not_controller(result.error_code for result in response.results)
        for result in response.results:
            client.metadata.forget(result.name)
        return {
            result.name: Refusal(result.error_code, result.error_message, subject=topic_subject(result.name))
            if result.error_code
            else None
            for result in response.results
        }

    return await client.retrying(attempt)


async def delete_records(
    client: Client, before: Mapping[tuple[str, int], int], *, timeout_ms: int = ADMIN_TIMEOUT_MS
) -> dict[tuple[str, int], int | Refusal]:
    """Delete what lies before an offset (-1: everything); answers with the partitions' new first offsets."""

    async def one(topic: str, index: int, offset: int) -> int | Refusal:
        async def attempt() -> int:
            partition = DeleteRecordsPartition(partition_index=index, offset=offset)
            response: DeleteRecordsResponse = await client.call(
                DeleteRecordsRequest(
                    topics=[DeleteRecordsTopic(name=topic, partitions=[partition])], timeout_ms=timeout_ms
                ),
                node=LeaderOf(topic, index),
                timeout_ms=timeout_ms,
            )
            result = response.topics[0].partitions[0]
            refuse(result.error_code, subject=partition_subject(topic, index))
            return result.low_watermark

        try:
            return await client.retrying(attempt, topic=topic, final=MISSING)
        except Refusal as refusal:
            return refusal

    found = await asyncio.gather(*(one(topic, index, offset) for (topic, index), offset in before.items()))
    return dict(zip(before, found, strict=True))


def _raise_not_controller(codes: Iterable[int]) -> None:
    """A controller that moved refuses every part of a request in the same way."""
    if any(code == ErrorCode.NOT_CONTROLLER for code in codes):
        refuse(ErrorCode.NOT_CONTROLLER)
