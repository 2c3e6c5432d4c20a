"""What happens to a consumer group by time alone.

(…, "session", member)    the member was not heard of for its session timeout
(…, "rebalance", member)  the member has not let go of partitions within its rebalance timeout
(…, "join", member)       a classic member has not come back by JoinGroup after it was told to
(…, "sync", member)       a classic member has not asked for its assignment
(…, "patterns")           the topics behind the group's patterns are to be looked up
(…, "gathered")           members that came together are to be assigned

The member is removed in all cases but the last two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.consumer.config import ConsumerConfig
from millstream.groups.consumer.gathering import decide_gathered
from millstream.groups.consumer.leaving import decide_removal
from millstream.groups.consumer.member import MemberState
from millstream.groups.consumer.patterns import decide_patterns
from millstream.groups.consumer.timer_keys import rebalance_timer, session_timer

if TYPE_CHECKING:
    from millstream.groups.consumer.group import ConsumerGroup
    from millstream.groups.machine import GroupMachine
    from millstream.replicated import Cancel, Decision, Schedule


def on_loaded(machine: GroupMachine, group: ConsumerGroup) -> tuple[Schedule | Cancel, ...]:
    """The group was read from the log: its members have their whole time again to be heard of."""
    timeout_ms = ConsumerConfig.of(machine, group.id).session_timeout_ms
    timers: list[Schedule | Cancel] = []
    for member in group.members.values():
        timers.append(session_timer(group.id, member.id, timeout_ms))
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            timers.append(rebalance_timer(group.id, member))
    return tuple(timers)


def on_timer(machine: GroupMachine, group: ConsumerGroup, key: tuple[Any, ...], now_ms: int) -> Decision[Any]:
    match key[2:]:
        case ("patterns",):
            return decide_patterns(machine, group, now_ms)
        case ("gathered",):
            return decide_gathered(machine, group, now_ms)
        case ("join", member_id):
            group.awaited_joins.pop(member_id, None)
            return decide_removal(machine, group, member_id, now_ms)
        case ("session" | "rebalance" | "sync", member_id):
            return decide_removal(machine, group, member_id, now_ms)
        case _:
            raise AssertionError(f"{key!r} is no timer of a consumer group")
