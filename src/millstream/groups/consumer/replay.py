"""What is in the log of a consumer group becomes the group: the only writer of its stored state.

A group comes to be with its first record, whichever that is, and goes with the tombstone of its epoch. Records may have
lost their neighbours to compaction, so each is taken for itself; a tombstone for what is not there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.group import ClassicGroup
from millstream.groups.consumer.group import ConsumerGroup
from millstream.groups.consumer.member import ConsumerMember
from millstream.groups.consumer.partitions import target_from_record
from millstream.groups.consumer.subscriptions import ResolvedPattern
from millstream.protocol.messages.groups.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
)
from millstream.protocol.messages.groups.consumer_group_member_metadata import ConsumerGroupMemberMetadataKey
from millstream.protocol.messages.groups.consumer_group_metadata import ConsumerGroupMetadataKey
from millstream.protocol.messages.groups.consumer_group_partition_metadata import ConsumerGroupPartitionMetadataKey
from millstream.protocol.messages.groups.consumer_group_regular_expression import ConsumerGroupRegularExpressionKey
from millstream.protocol.messages.groups.consumer_group_target_assignment_member import (
    ConsumerGroupTargetAssignmentMemberKey,
)
from millstream.protocol.messages.groups.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.machine import GroupMachine

# The epoch of a target assignment that was removed.
NO_EPOCH = -1


def _existing(machine: GroupMachine, group_id: str) -> ConsumerGroup | None:
    group = machine.groups.get(group_id)
    return group if isinstance(group, ConsumerGroup) else None


def _existing_or_new(machine: GroupMachine, group_id: str) -> ConsumerGroup:
    group = machine.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    assert group is None or isinstance(group, ClassicGroup), f"{group!r} has no place here"
    # A classic group of this id ended before: its tombstone is older than this record, and may be gone already.
    created = machine.groups[group_id] = ConsumerGroup(group_id)
    return created


def _apply_epoch(machine: GroupMachine, key: ConsumerGroupMetadataKey, value: Any) -> None:
    if value is not None:
        group = _existing_or_new(machine, key.group_id)
        group.epoch = value.epoch
        group.metadata_hash = value.metadata_hash
    elif _existing(machine, key.group_id) is not None:
        machine.forget_group(key.group_id)


def _apply_member(machine: GroupMachine, key: ConsumerGroupMemberMetadataKey, value: Any) -> None:
    if value is not None:
        group = _existing_or_new(machine, key.group_id)
        known = group.members.get(key.member_id) or ConsumerMember(id=key.member_id)
        group.put(known.described(value))
    elif (existing := _existing(machine, key.group_id)) is not None:
        existing.remove(key.member_id)


def _apply_assignment(machine: GroupMachine, key: ConsumerGroupCurrentMemberAssignmentKey, value: Any) -> None:
    if value is not None:
        group = _existing_or_new(machine, key.group_id)
        known = group.members.get(key.member_id) or ConsumerMember(id=key.member_id)
        group.put(known.placed(value))
    elif (existing := _existing(machine, key.group_id)) is not None and key.member_id in existing.members:
        existing.put(existing.members[key.member_id].unplaced())


def _apply_target(machine: GroupMachine, key: ConsumerGroupTargetAssignmentMemberKey, value: Any) -> None:
    if value is not None:
        group = _existing_or_new(machine, key.group_id)
        group.target[key.member_id] = target_from_record(value.topic_partitions)
    elif (existing := _existing(machine, key.group_id)) is not None:
        existing.target.pop(key.member_id, None)


def _apply_target_epoch(machine: GroupMachine, key: ConsumerGroupTargetAssignmentMetadataKey, value: Any) -> None:
    if value is not None:
        group = _existing_or_new(machine, key.group_id)
        group.target_epoch = value.assignment_epoch
        group.target_timestamp_ms = value.assignment_timestamp
    elif (existing := _existing(machine, key.group_id)) is not None:
        existing.target_epoch = NO_EPOCH
        existing.target_timestamp_ms = 0


def _apply_pattern(machine: GroupMachine, key: ConsumerGroupRegularExpressionKey, value: Any) -> None:
    if value is not None:
        group = _existing_or_new(machine, key.group_id)
        resolved = ResolvedPattern(frozenset(value.topics), value.version, value.timestamp)
        group.subscriptions.resolve(key.regular_expression, resolved)
    elif (existing := _existing(machine, key.group_id)) is not None:
        existing.subscriptions.resolve(key.regular_expression, None)


def _apply_old_metadata(machine: GroupMachine, key: ConsumerGroupPartitionMetadataKey, value: Any) -> None:
    if value is not None:
        _existing_or_new(machine, key.group_id).has_old_metadata = True
    elif (existing := _existing(machine, key.group_id)) is not None:
        existing.has_old_metadata = False


CONSUMER_RECORDS: dict[type, Callable[[GroupMachine, Any, Any], None]] = {
    ConsumerGroupMetadataKey: _apply_epoch,
    ConsumerGroupMemberMetadataKey: _apply_member,
    ConsumerGroupCurrentMemberAssignmentKey: _apply_assignment,
    ConsumerGroupTargetAssignmentMemberKey: _apply_target,
    ConsumerGroupTargetAssignmentMetadataKey: _apply_target_epoch,
    ConsumerGroupRegularExpressionKey: _apply_pattern,
    ConsumerGroupPartitionMetadataKey: _apply_old_metadata,
}
