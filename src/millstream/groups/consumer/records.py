"""The records of a consumer group, and their tombstones. All of them are written in version 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.consumer.partitions import target_to_record
from millstream.protocol.messages.groups.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from millstream.protocol.messages.groups.consumer_group_member_metadata import ConsumerGroupMemberMetadataKey
from millstream.protocol.messages.groups.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from millstream.protocol.messages.groups.consumer_group_partition_metadata import ConsumerGroupPartitionMetadataKey
from millstream.protocol.messages.groups.consumer_group_regular_expression import (
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from millstream.protocol.messages.groups.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
)
from millstream.protocol.messages.groups.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from millstream.replicated import Record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.groups.assignors.spec import Partitions
    from millstream.groups.consumer.member import ConsumerMember


def epoch_record(group_id: str, epoch: int, metadata_hash: int) -> Record:
    return Record(
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def member_record(group_id: str, member: ConsumerMember) -> Record:
    return Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.id), member.metadata_value())


def assignment_record(group_id: str, member: ConsumerMember) -> Record:
    return Record(
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.id), member.assignment_value()
    )


def target_record(group_id: str, member_id: str, target: Partitions) -> Record:
    return Record(
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(topic_partitions=target_to_record(target)),
    )


def target_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> Record:
    return Record(
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=timestamp_ms),
    )


def pattern_record(group_id: str, pattern: str, topics: Iterable[str], version: int, timestamp_ms: int) -> Record:
    return Record(
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern),
        ConsumerGroupRegularExpressionValue(topics=sorted(topics), version=version, timestamp=timestamp_ms),
    )


def pattern_tombstone(group_id: str, pattern: str) -> Record:
    return Record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def old_metadata_tombstone(group_id: str) -> Record:
    """Removes what brokers before Kafka 4.1 stored of a group's topics."""
    return Record(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def member_tombstones(group_id: str, member_id: str) -> tuple[Record, ...]:
    return (
        Record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        Record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    )


def group_tombstones(group_id: str, member_ids: Iterable[str], patterns: Iterable[str]) -> tuple[Record, ...]:
    """Everything of a group. What refers to members goes before the members, as Kafka's replay wants it."""
    members = list(member_ids)
    return (
        *(
            Record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)
            for member_id in members
        ),
        *(
            Record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)
            for member_id in members
        ),
        Record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(
            Record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)
            for member_id in members
        ),
        *(pattern_tombstone(group_id, pattern) for pattern in patterns),
        old_metadata_tombstone(group_id),
        Record(ConsumerGroupMetadataKey(group_id=group_id), None),
    )
