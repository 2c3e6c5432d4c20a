"""From one generation of a classic group to the next: the join phase and its end.

A rebalance starts when somebody joins, leaves or goes silent. Members hear of it in their heartbeats
(REBALANCE_IN_PROGRESS) and join again; their JoinGroups wait until all have, or until the longest of their rebalance
timeouts has passed. Then whoever did not come is removed, except static members: those may be restarting, and only
their session ends them (KIP-345).

The first members of an empty group get `group.initial.rebalance.delay.ms`, so that a group which starts all at once
starts with one generation; each newcomer extends it, up to the rebalance timeout in all (KIP-134).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.classic.answers import joined_answer
from millstream.groups.classic.state import GroupState
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from millstream.groups.classic.group import ClassicGroup
    from millstream.groups.classic.member import ClassicMember
    from millstream.groups.classic.step import Step


def rebalance_or_go_on(group: ClassicGroup, step: Step) -> None:
    """The membership changed: a rebalance starts, or the one that runs may be complete by it."""
    if group.state is GroupState.PREPARING_REBALANCE:
        complete_join_if_all_came(group, step)
    else:
        start_rebalance(group, step)


def start_rebalance(group: ClassicGroup, step: Step) -> None:
    if group.state is GroupState.COMPLETING_REBALANCE:
        drop_assignments(group, step, ErrorCode.REBALANCE_IN_PROGRESS)
    group.pending_sync.clear()
    step.cancel(group.sync_timer)
    is_first = group.state is GroupState.EMPTY
    group.enter(GroupState.PREPARING_REBALANCE, step.now_ms)
    if is_first:
        delay_ms = step.config.initial_rebalance_delay_ms
        group.initial_wait = (delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
        group.newcomer_in_wait = False
        step.schedule(group.join_timer, delay_ms)
    elif group.all_have_joined:
        complete_join(group, step)
    else:
        step.schedule(group.join_timer, group.rebalance_timeout_ms)


def drop_assignments(group: ClassicGroup, step: Step, code: ErrorCode) -> None:
    """What this generation was to own is void; whoever waits for it hears why."""
    for member in group.members.values():
        member.assignment = b""
        if step.refuse_sync(member, code):
            step.keep_session(group, member)


def complete_join_if_all_came(group: ClassicGroup, step: Step) -> None:
    # In the initial wait nobody knows who "all" are.
    preparing = group.state is GroupState.PREPARING_REBALANCE
    if preparing and group.initial_wait is None and group.all_have_joined:
        complete_join(group, step)


def end_or_extend_initial_wait(group: ClassicGroup, step: Step) -> None:
    """The timer of the initial wait rang."""
    assert group.initial_wait is not None
    delay_ms, remaining_ms = group.initial_wait
    if group.newcomer_in_wait and remaining_ms != 0:
        group.newcomer_in_wait = False
        next_delay_ms = min(step.config.initial_rebalance_delay_ms, remaining_ms)
        group.initial_wait = (next_delay_ms, max(remaining_ms - delay_ms, 0))
        step.schedule(group.join_timer, next_delay_ms)
    else:
        complete_join(group, step)


def complete_join(group: ClassicGroup, step: Step) -> None:
    """The join phase is over: the next generation begins with those who came."""
    step.cancel(group.join_timer)
    for member in [each for each in group.members.values() if each.join is None and not each.is_static]:
        group.remove(member.id)
        step.cancel(group.session_timer(member.id))
    if not group.elect_leader_who_joined() and group.members:
        # Static members only, and none is back yet: their sessions will end them, or they come.
        step.schedule(group.join_timer, group.rebalance_timeout_ms)
        return
    group.next_generation(step.now_ms)
    if not group.members:
        step.records.append(group.record({}))
        return
    for member in group.members.values():
        _let_in(group, member, step)
    step.schedule(group.sync_timer, group.rebalance_timeout_ms)


def _let_in(group: ClassicGroup, member: ClassicMember, step: Step) -> None:
    step.answer_join(member, lambda version: joined_answer(group, member.id, version))
    step.keep_session(group, member)
    member.is_new = False
    group.pending_sync[member.id] = None


def remove_member(group: ClassicGroup, member: ClassicMember, step: Step) -> None:
    """Take a member out; what it waits for is answered, so that a member which is alive after all joins anew."""
    step.refuse_join(member, ErrorCode.UNKNOWN_MEMBER_ID)
    step.refuse_sync(member, ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member.id)
