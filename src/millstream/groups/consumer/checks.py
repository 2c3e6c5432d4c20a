"""Who may speak for a member of a consumer group. The sentences are Kafka's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.consumer.member import JOIN_EPOCH, STATIC_LEAVE_EPOCH
from millstream.groups.consumer.partitions import are_all_owned
from millstream.protocol.errors import (
    FencedInstance,
    FencedMemberEpoch,
    GroupFull,
    UnknownMember,
    UnreleasedInstance,
)
from millstream.settings import GROUP_CONSUMER_MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.consumer.partitions import ListedPartitions
    from millstream.groups.machine import GroupMachine


def check_room(machine: GroupMachine, group: ConsumerGroup, member_id: str) -> None:
    size_max = machine.settings[GROUP_CONSUMER_MAX_SIZE]
    if len(group.members) >= size_max and member_id not in group.members:
        raise GroupFull(f"The consumer group has reached its maximum capacity of {size_max} members.")


def check_epoch(member: ConsumerMember, epoch: int, reported: Sequence[ListedPartitions] | None) -> None:
    """A member may join anew at any time; else its epoch is the group's, or the one before, if it lost an answer.

    An old epoch is only believed with the partitions that the lost answer left the member with.
    """
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    if epoch > member.epoch:
        raise FencedMemberEpoch(
            f"The consumer group member has a greater member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )
    if epoch != member.previous_epoch or not are_all_owned(reported, member.assigned):
        raise FencedMemberEpoch(
            f"The consumer group member has a smaller member epoch ({epoch}) than the one known by the group "
            f"coordinator ({member.epoch}). The member must abandon all its partitions and rejoin."
        )


def check_instance_is_known(group: ConsumerGroup, instance_id: str) -> ConsumerMember:
    member = group.static_member(instance_id)
    if member is None:
        raise UnknownMember(f"Instance id {instance_id} is unknown.")
    return member


def check_instance_is_released(member: ConsumerMember, member_id: str, instance_id: str) -> None:
    if member.epoch != STATIC_LEAVE_EPOCH:
        raise UnreleasedInstance(
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id "
            f"is owned by {member.id} member."
        )


def check_instance_is_not_fenced(member: ConsumerMember, member_id: str, instance_id: str) -> None:
    if member.id != member_id:
        raise FencedInstance(
            f"Static member {member_id} with instance id {instance_id} was fenced by member {member.id}."
        )
