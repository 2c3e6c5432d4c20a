"""Heartbeat and LeaveGroup: how members of a classic group stay, and how they go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.classic.config import ClassicConfig
from millstream.groups.classic.group import ClassicGroup
from millstream.groups.classic.rebalance import complete_join_if_all_came, remove_member, start_rebalance
from millstream.groups.classic.state import GroupState
from millstream.groups.classic.step import Step
from millstream.groups.consumer.classic_members import decide_classic_heartbeat, decide_classic_leave
from millstream.groups.consumer.group import ConsumerGroup
from millstream.protocol.errors import BrokerError, ErrorCode, IllegalGeneration, InvalidGroupId, UnknownMember
from millstream.protocol.messages.heartbeat import HeartbeatResponse
from millstream.protocol.messages.leave_group import LeaveGroupResponse, MemberResponse
from millstream.replicated import Decision

if TYPE_CHECKING:
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.heartbeat import HeartbeatRequest
    from millstream.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity


def decide_heartbeat(machine: GroupMachine, request: HeartbeatRequest) -> Decision[HeartbeatResponse]:
    known = machine.groups.get(request.group_id)
    if isinstance(known, ConsumerGroup):
        return decide_classic_heartbeat(known, request)
    group = _classic_group(machine, request.group_id)
    member = group.check_member(request.member_id, request.group_instance_id)
    if request.generation_id != group.generation:
        raise IllegalGeneration(f"the generation is {group.generation}, not {request.generation_id}")
    rebalancing = group.state is GroupState.PREPARING_REBALANCE
    code = ErrorCode.REBALANCE_IN_PROGRESS if rebalancing else ErrorCode.NONE
    return Decision(response=HeartbeatResponse(error_code=code), timers=(group.keep_session(member),))


def decide_leave(machine: GroupMachine, request: LeaveGroupRequest, now_ms: int) -> Decision[LeaveGroupResponse]:
    """`request.members` lists who leaves, in every version (the handler sees to that)."""
    known = machine.groups.get(request.group_id)
    if isinstance(known, ConsumerGroup):
        return decide_classic_leave(machine, known, request, now_ms)
    group = _classic_group(machine, request.group_id)
    step = Step(ClassicConfig.of(machine.settings), now_ms)
    results = [_leave(group, leaving, step) for leaving in request.members]
    if any(result.error_code == ErrorCode.NONE for result in results):
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            start_rebalance(group, step)
        else:
            complete_join_if_all_came(group, step)
    return step.decision(LeaveGroupResponse(members=results))


def _classic_group(machine: GroupMachine, group_id: str) -> ClassicGroup:
    if not group_id:
        raise InvalidGroupId
    group = machine.groups.get(group_id)
    if not isinstance(group, ClassicGroup):
        raise UnknownMember(f"there is no group '{group_id}'")
    return group


def _leave(group: ClassicGroup, leaving: MemberIdentity, step: Step) -> MemberResponse:
    code = ErrorCode.NONE
    try:
        _remove(group, leaving.member_id, leaving.group_instance_id, step)
    except BrokerError as refusal:
        code = refusal.code
    return MemberResponse(member_id=leaving.member_id, group_instance_id=leaving.group_instance_id, error_code=code)


def _remove(group: ClassicGroup, member_id: str, instance_id: str | None, step: Step) -> None:
    if not member_id and instance_id is not None:
        # An admin removes a static member by its instance id, whatever its member id is.
        member_id = group.static_members.get(instance_id, "")
    if member_id in group.pending_ids:
        group.remove(member_id)
    else:
        remove_member(group, group.check_member(member_id, instance_id), step)
    step.cancel(group.session_timer(member_id))
