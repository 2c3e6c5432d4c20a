"""What happens to a classic group by time alone.

(…, "session", member)   the member was not heard of for its session timeout, or never joined with the id it was given
(…, "join")              the join phase, or the initial wait for more members, is over
(…, "sync")              members that joined never asked for their assignment
(…, "rebalance")         the group came over from the new protocol, and what the others had is to be shared out
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.config import ClassicConfig
from millstream.groups.classic.rebalance import (
    complete_join,
    end_or_extend_initial_wait,
    rebalance_or_go_on,
    remove_member,
    start_rebalance,
)
from millstream.groups.classic.state import GroupState
from millstream.groups.classic.step import Step

if TYPE_CHECKING:
    from millstream.groups.classic.group import ClassicGroup
    from millstream.groups.machine import GroupMachine
    from millstream.replicated import Cancel, Decision, Schedule


def on_loaded(machine: GroupMachine, group: ClassicGroup, now_ms: int) -> tuple[Schedule | Cancel, ...]:
    """The group was read from the log: its members have their whole session to be heard of."""
    step = Step(ClassicConfig.of(machine.settings), now_ms)
    for member in group.members.values():
        step.keep_session(group, member)
    if len(group.members) > step.config.size_max:
        # The limit was lowered. Members commit what they have done, join again, and the last to come are turned away.
        start_rebalance(group, step)
    return step.decision().timers


def on_timer(machine: GroupMachine, group: ClassicGroup, key: tuple[Any, ...], now_ms: int) -> Decision[Any]:
    step = Step(ClassicConfig.of(machine.settings), now_ms)
    match key[2:]:
        case ("session", member_id):
            _end_session(group, member_id, step)
        case ("join",):
            _end_join_phase(group, step)
        case ("sync",):
            _end_sync_phase(group, step)
        case ("rebalance",):
            if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
                start_rebalance(group, step)
        case _:
            raise AssertionError(f"{key!r} is no timer of a classic group")
    return step.decision()


def _end_session(group: ClassicGroup, member_id: str, step: Step) -> None:
    if member_id in group.pending_ids:
        group.remove(member_id)
        if group.state is GroupState.PREPARING_REBALANCE and group.all_have_joined:
            complete_join(group, step)
        return
    member = group.members.get(member_id)
    if member is None or member.is_excused:
        return
    remove_member(group, member, step)
    if group.state is not GroupState.PREPARING_REBALANCE:
        rebalance_or_go_on(group, step)
    elif group.all_have_joined:
        complete_join(group, step)


def _end_join_phase(group: ClassicGroup, step: Step) -> None:
    if group.state is not GroupState.PREPARING_REBALANCE:
        return
    if group.initial_wait is not None:
        end_or_extend_initial_wait(group, step)
    else:
        complete_join(group, step)


def _end_sync_phase(group: ClassicGroup, step: Step) -> None:
    if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_sync:
        return
    for member_id in list(group.pending_sync):
        remove_member(group, group.members[member_id], step)
        step.cancel(group.session_timer(member_id))
    start_rebalance(group, step)
