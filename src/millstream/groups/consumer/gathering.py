"""Members that come together are assigned together.

A hundred members that start at once would be a hundred target assignments, each of which takes partitions away from
those who just got them. So whoever makes a new target necessary is not answered at once: its records are written, and
it waits until nobody else has come for a moment. Then one target is made for all, and each is told its part of it.
Heartbeats that change nothing are answered as ever, by the last target.

`group.coordinator.append.linger.ms` says how long to gather: -1, the default, for as long as more keep coming, but no
longer than `GATHERED_MS_MAX`; 0 not at all. What waits here is soft state: a member whose answer is lost joins again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.groups.consumer.answers import heartbeat_answer
from millstream.groups.consumer.entering import place
from millstream.groups.consumer.partitions import NO_PARTITIONS
from millstream.groups.consumer.reconciling import Target
from millstream.groups.consumer.step import Step
from millstream.groups.consumer.targeting import assign, is_target_due
from millstream.groups.consumer.timer_keys import gathering_timer
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from millstream.replicated import Decision, Reply, told_to_clients
from millstream.settings import GROUP_COORDINATOR_APPEND_LINGER_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.consumer.partitions import ListedPartitions
    from millstream.groups.machine import GroupMachine
    from millstream.replicated import Token

# How often to look whether more have come, and when to stop looking.
LOOK_EVERY_MS = 1
GATHERED_MS_MAX = 20


class Waiting(NamedTuple):
    """A heartbeat that waits for the next target assignment: who asks, and what it said."""

    token: Token
    member_id: str
    tells_all: bool
    subscription_changed: bool
    reported: Sequence[ListedPartitions] | None


class Gathering:
    """The heartbeats of one group that will be answered together."""

    def __init__(self, now_ms: int) -> None:
        self.since_ms = now_ms
        self.waiting: list[Waiting] = []
        self.seen = 0


def must_wait(step: Step, *, changed: bool) -> bool:
    """Whether a heartbeat that has `changed` who reads what is to be answered with others."""
    machine, group = step.machine, step.group
    if not changed or machine.settings[GROUP_COORDINATOR_APPEND_LINGER_MS] == 0:
        return False
    # A classic group that becomes a consumer group does so in one decision.
    if machine.groups.get(group.id, group) is not group:
        return False
    return group.id in machine.gathering or is_target_due(step)


def wait(step: Step, heartbeat: Waiting) -> Decision[Any]:
    """Write what the heartbeat changed, and keep it for the next target."""
    machine, group_id = step.machine, step.group.id
    gathering = machine.gathering.get(group_id)
    if gathering is None:
        gathering = machine.gathering[group_id] = Gathering(step.now_ms)
        step.timers.append(gathering_timer(group_id, _look_after_ms(machine)))
    gathering.waiting.append(heartbeat)

    def forget() -> None:
        # Nothing was written, the timer was not set: the shard refuses the request itself.
        gathering.waiting.remove(heartbeat)
        if not gathering.waiting:
            machine.gathering.pop(group_id, None)

    step.undos.append(forget)
    return step.decision()


def _look_after_ms(machine: GroupMachine) -> int:
    linger_ms = machine.settings[GROUP_COORDINATOR_APPEND_LINGER_MS]
    return LOOK_EVERY_MS if linger_ms < 0 else linger_ms


def decide_gathered(machine: GroupMachine, group: ConsumerGroup, now_ms: int) -> Decision[Any]:
    """The timer rang: one target for all who wait, unless more keep coming."""
    gathering = machine.gathering.get(group.id)
    if gathering is None:
        return Decision()
    if _is_still_growing(machine, gathering, now_ms):
        gathering.seen = len(gathering.waiting)
        return Decision(timers=(gathering_timer(group.id, LOOK_EVERY_MS),))
    del machine.gathering[group.id]
    step = Step(machine, group, now_ms)
    present = [each for each in gathering.waiting if each.member_id in group.members]
    if present:
        _place_all(step, present)
    gone = [each for each in gathering.waiting if each.member_id not in group.members]
    step.replies += refusals(gone, ErrorCode.UNKNOWN_MEMBER_ID)
    return replace(
        step.decision(), undo=lambda code: Decision(replies=refusals(gathering.waiting, told_to_clients(code)))
    )


def _is_still_growing(machine: GroupMachine, gathering: Gathering, now_ms: int) -> bool:
    return (
        machine.settings[GROUP_COORDINATOR_APPEND_LINGER_MS] < 0
        and len(gathering.waiting) > max(gathering.seen, 1)
        and now_ms - gathering.since_ms < GATHERED_MS_MAX
    )


def _place_all(step: Step, waiting: Sequence[Waiting]) -> None:
    group = step.group
    epoch, assigned = group.target_epoch, group.target
    if is_target_due(step):
        epoch, assigned = step.epoch, assign(step, group.members[waiting[0].member_id])
    for each in waiting:
        member = group.members[each.member_id]
        placed = place(
            step,
            member,
            Target(epoch, assigned.get(member.id, NO_PARTITIONS)),
            subscription_changed=each.subscription_changed,
            reported=each.reported,
        )
        tell = each.tells_all or placed.assigned != member.assigned
        step.replies.append(Reply(each.token, heartbeat_answer(step, placed, tell=tell)))


def refusals(waiting: Sequence[Waiting], code: ErrorCode) -> tuple[Reply, ...]:
    return tuple(
        Reply(each.token, ConsumerGroupHeartbeatResponse(error_code=code, member_epoch=0, heartbeat_interval_ms=0))
        for each in waiting
    )


def decide_abandoned(machine: GroupMachine, group_id: str) -> Decision[Any]:
    """The group is no consumer group any more: nobody in it is a member."""
    gathering = machine.gathering.pop(group_id, None)
    if gathering is None:
        return Decision()
    return Decision(replies=refusals(gathering.waiting, ErrorCode.UNKNOWN_MEMBER_ID))
