"""Partitions: leaders, replicas, and the producers that write to them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from millstream.client.client import CONTROLLER, LeaderOf
from millstream.client.errors import Refusal, partition_subject, refuse
from millstream.client.grouping import by_topic
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from millstream.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from millstream.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from millstream.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.client.client import Client
    from millstream.protocol.messages.describe_producers import ProducerState

TopicPartition = tuple[str, int]


class Election(IntEnum):
    """Who may become leader: the preferred replica, or any replica even if that loses records."""

    PREFERRED = 0
    UNCLEAN = 1


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A move under way."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


async def elect_leaders(
    client: Client, partitions: Sequence[TopicPartition] | None, *, election: Election = Election.PREFERRED
) -> dict[TopicPartition, Refusal | None]:
    """Elect leaders of these partitions, or of all."""
    wanted = None
    if partitions is not None:
        wanted = [TopicPartitions(topic=topic, partitions=indexes) for topic, indexes in by_topic(partitions).items()]
    request = ElectLeadersRequest(election_type=election, topic_partitions=wanted)

    async def attempt() -> dict[TopicPartition, Refusal | None]:
        response: ElectLeadersResponse = await client.call(
            request,
            node=CONTROLLER,
            timeout_ms=request.timeout_ms,
            at_least=1 if election is Election.UNCLEAN else 0,
        )
        refuse(response.error_code)
        return {
            (topic.topic, result.partition_id): Refusal(
                result.error_code, result.error_message, subject=partition_subject(topic.topic, result.partition_id)
            )
            if result.error_code
            else None
            for topic in response.replica_election_results
            for result in topic.partition_result
        }

    return await client.retrying(attempt)


async def alter_reassignments(
    client: Client, targets: Mapping[TopicPartition, Sequence[int] | None]
) -> dict[TopicPartition, Refusal | None]:
    """Move partitions to these replicas; None cancels a move."""

    def partition(topic: str, index: int) -> ReassignablePartition:
        replicas = targets[topic, index]
        return ReassignablePartition(partition_index=index, replicas=None if replicas is None else list(replicas))

    request = AlterPartitionReassignmentsRequest(
        topics=[
            ReassignableTopic(name=topic, partitions=[partition(topic, index) for index in indexes])
            for topic, indexes in by_topic(targets).items()
        ]
    )

    async def attempt() -> dict[TopicPartition, Refusal | None]:
        response: AlterPartitionReassignmentsResponse = await client.call(
            request, node=CONTROLLER, timeout_ms=request.timeout_ms
        )
        refuse(response.error_code, response.error_message)
        return {
            (topic.name, result.partition_index): Refusal(
                result.error_code, result.error_message, subject=partition_subject(topic.name, result.partition_index)
            )
            if result.error_code
            else None
            for topic in response.responses
            for result in topic.partitions
        }

    return await client.retrying(attempt)


async def list_reassignments(
    client: Client, partitions: Sequence[TopicPartition] | None = None
) -> dict[TopicPartition, Reassignment]:
    """Moves under way, of these partitions or of all."""
    wanted = None
    if partitions is not None:
        wanted = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
    request = ListPartitionReassignmentsRequest(topics=wanted)

    async def attempt() -> dict[TopicPartition, Reassignment]:
        response: ListPartitionReassignmentsResponse = await client.call(
            request, node=CONTROLLER, timeout_ms=request.timeout_ms
        )
        refuse(response.error_code, response.error_message)
        return {
            (topic.name, moving.partition_index): Reassignment(
                tuple(moving.replicas), tuple(moving.adding_replicas), tuple(moving.removing_replicas)
            )
            for topic in response.topics
            for moving in topic.partitions
        }

    return await client.retrying(attempt)


async def describe_producers(client: Client, topic: str, partition: int) -> list[ProducerState]:
    """The producers that the partition's leader remembers."""
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[partition])])

    async def attempt() -> list[ProducerState]:
        response: DescribeProducersResponse = await client.call(request, node=LeaderOf(topic, partition))
        result = response.topics[0].partitions[0]
        refuse(result.error_code, result.error_message, subject=partition_subject(topic, partition))
        return result.active_producers

    return await client.retrying(attempt, topic=topic)
