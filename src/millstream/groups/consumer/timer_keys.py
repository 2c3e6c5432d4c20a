"""The timers of a consumer group, by their keys; what happens when they ring is in timers.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.consumer.member import MemberState
from millstream.groups.group import CONSUMER
from millstream.replicated import Cancel, Schedule

if TYPE_CHECKING:
    from millstream.groups.consumer.member import ConsumerMember

MEMBER_TIMERS = ("session", "rebalance", "join", "sync")


def member_timer(group_id: str, kind: str, member_id: str, delay_ms: int) -> Schedule:
    return Schedule((CONSUMER, group_id, kind, member_id), delay_ms)


def session_timer(group_id: str, member_id: str, timeout_ms: int) -> Schedule:
    return member_timer(group_id, "session", member_id, timeout_ms)


def rebalance_timer(group_id: str, member: ConsumerMember) -> Schedule | Cancel:
    """Runs while the member has to let go of partitions; a new epoch makes it a new one."""
    if member.state is MemberState.UNREVOKED_PARTITIONS:
        return member_timer(group_id, "rebalance", member.id, member.rebalance_timeout_ms)
    return cancelled_timer(group_id, "rebalance", member.id)


def patterns_timer(group_id: str) -> Schedule:
    return Schedule((CONSUMER, group_id, "patterns"), 0)


def gathering_timer(group_id: str, delay_ms: int) -> Schedule:
    return Schedule((CONSUMER, group_id, "gathered"), delay_ms)


def cancelled_timer(group_id: str, kind: str, member_id: str) -> Cancel:
    return Cancel((CONSUMER, group_id, kind, member_id))


def cancelled(group_id: str, member_id: str) -> tuple[Cancel, ...]:
    """All timers of a member that has gone."""
    return tuple(cancelled_timer(group_id, kind, member_id) for kind in MEMBER_TIMERS)
