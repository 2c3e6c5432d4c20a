"""Members go: of themselves, for a while (a static one), or because they were not heard of in time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.consumer.checks import check_instance_is_known, check_instance_is_not_fenced
from millstream.groups.consumer.downgrade import can_downgrade_without, decide_downgrade
from millstream.groups.consumer.member import STATIC_LEAVE_EPOCH
from millstream.groups.consumer.partitions import NOTHING_OWNED
from millstream.groups.consumer.records import assignment_record, epoch_record, member_tombstones, pattern_tombstone
from millstream.groups.consumer.step import Step
from millstream.groups.consumer.timer_keys import cancelled, cancelled_timer
from millstream.groups.consumer.topic_hash import group_hash
from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from millstream.replicated import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def decide_leave(
    machine: GroupMachine, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, now_ms: int
) -> Decision[ConsumerGroupHeartbeatResponse]:
    answer = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch, heartbeat_interval_ms=0
    )
    if request.instance_id is None:
        return decide_removals(machine, group, [group.member(request.member_id)], answer, now_ms)
    member = check_instance_is_known(group, request.instance_id)
    check_instance_is_not_fenced(member, request.member_id, request.instance_id)
    if request.member_epoch != STATIC_LEAVE_EPOCH:
        return decide_removals(machine, group, [member], answer, now_ms)
    # It keeps its place and its partitions until its session ends; whoever comes with its instance id takes over.
    absent = member.but(
        epoch=STATIC_LEAVE_EPOCH,
        revoking=NOTHING_OWNED,
        assigned={topic_id: dict.fromkeys(partitions, 0) for topic_id, partitions in member.assigned.items()},
    )
    return Decision(
        records=(assignment_record(group.id, absent),),
        response=answer,
        timers=(cancelled_timer(group.id, "rebalance", member.id),),
    )


def decide_removal(machine: GroupMachine, group: ConsumerGroup, member_id: str, now_ms: int) -> Decision[Any]:
    """A timer of the member rang."""
    member = group.members.get(member_id)
    return Decision() if member is None else decide_removals(machine, group, [member], None, now_ms)


def decide_removals(
    machine: GroupMachine, group: ConsumerGroup, members: Sequence[ConsumerMember], response: Any, now_ms: int
) -> Decision[Any]:
    """Take members out; the others go on, or become a classic group if only classic members are left."""
    if not members:
        return Decision(response=response)
    if can_downgrade_without(machine, group, members):
        return decide_downgrade(machine, group, members, response, now_ms)
    step = Step(machine, group, now_ms)
    step.change_subscriptions()
    for member in members:
        step.records += member_tombstones(group.id, member.id)
        step.timers += cancelled(group.id, member.id)
        step.subscriptions.replace(member, None)
        group.awaited_joins.pop(member.id, None)
    patterns = dict.fromkeys(member.pattern for member in members if member.pattern)
    for pattern in step.subscriptions.drop_unused_patterns(patterns):
        step.records.append(pattern_tombstone(group.id, pattern))
    hashed = group_hash(step.subscriptions.topics(), machine.image, machine.topic_hashes)
    step.records.append(epoch_record(group.id, group.epoch + 1, hashed))
    return step.decision(response)
