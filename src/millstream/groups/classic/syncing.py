"""SyncGroup: the leader brings the assignment of a generation, every member fetches its own.

The assignment is stored before anybody hears of it, so a coordinator that takes over knows who owns what. If it cannot
be stored, all who wait are told so and the group rebalances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.groups.classic.answers import synced_answer
from millstream.groups.classic.config import ClassicConfig
from millstream.groups.classic.group import ClassicGroup
from millstream.groups.classic.member import Waiting
from millstream.groups.classic.rebalance import drop_assignments, start_rebalance
from millstream.groups.classic.state import GroupState
from millstream.groups.classic.step import Step
from millstream.groups.consumer.classic_members import decide_classic_sync
from millstream.groups.consumer.group import ConsumerGroup
from millstream.protocol.errors import (
    ErrorCode,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidGroupId,
    RebalanceInProgress,
    UnknownMember,
)
from millstream.replicated import Decision, Reply, told_to_clients

if TYPE_CHECKING:
    from millstream.groups.classic.member import ClassicMember
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.sync_group import SyncGroupRequest
    from millstream.replicated import Token


def decide_sync(
    machine: GroupMachine, request: SyncGroupRequest, version: int, token: Token, now_ms: int
) -> Decision[Any]:
    known = machine.groups.get(request.group_id)
    if isinstance(known, ConsumerGroup):
        return decide_classic_sync(machine, known, request)
    group, member = _sender(machine, request)
    step = Step(ClassicConfig.of(machine.settings), now_ms)
    group.pending_sync.pop(member.id, None)
    if not group.pending_sync:
        step.cancel(group.sync_timer)
    if group.state is GroupState.STABLE:
        return step.decision(synced_answer(group, member.assignment))
    # A SyncGroup that waits already was sent over a connection that the client has given up.
    step.refuse_sync(member, ErrorCode.REBALANCE_IN_PROGRESS)
    member.sync = Waiting(token, version)
    if group.leader != member.id:
        return step.decision()
    return _store(group, request, step)


def _sender(machine: GroupMachine, request: SyncGroupRequest) -> tuple[ClassicGroup, ClassicMember]:
    if not request.group_id:
        raise InvalidGroupId
    group = machine.groups.get(request.group_id)
    if not isinstance(group, ClassicGroup) or group.is_empty:
        raise UnknownMember(f"group '{request.group_id}' has no members")
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise IllegalGeneration(f"the generation is {group.generation}, not {request.generation_id}")
    for told, actual in ((request.protocol_type, group.protocol_type), (request.protocol_name, group.protocol)):
        if told is not None and actual is not None and told != actual:
            raise InconsistentGroupProtocol(f"the group uses '{actual}', not '{told}'")
    if group.state is GroupState.PREPARING_REBALANCE:
        raise RebalanceInProgress
    return group, member


def _store(group: ClassicGroup, request: SyncGroupRequest, step: Step) -> Decision[Any]:
    """Write the leader's assignment; members that it left out own nothing."""
    told = {each.member_id: bytes(each.assignment) for each in request.assignments}
    waiting = [member for member in group.members.values() if member.sync is not None]
    replies = [
        Reply(member.sync.token, synced_answer(group, told.get(member.id, b"")))
        for member in waiting
        if member.sync is not None
    ]
    sessions = [group.keep_session(member) for member in waiting]
    earlier = step.decision()

    def tell_and_rebalance(code: ErrorCode) -> Decision[Any]:
        drop_assignments(group, step, told_to_clients(code))
        start_rebalance(group, step)
        return step.decision()

    return Decision(
        records=(group.record(told),),
        replies=(*earlier.replies, *replies),
        timers=(*earlier.timers, *sessions),
        undo=tell_and_rebalance,
    )
