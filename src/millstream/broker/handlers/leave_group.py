"""LeaveGroup: members leave a classic group; see groups/classic/leaving.py.

Up to version 2 one member leaves, and its result is the request's; since version 3 each has its own (KIP-345).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.groups.classic.leaving import decide_leave
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.broker.dispatch import Deferred
    from millstream.groups.machine import GroupMachine
    from millstream.replicated import Decision, Token

MANY_MEMBERS_SINCE = 3

(_READ,) = needs_of(LeaveGroupRequest)


@handles(LeaveGroupRequest, versions="0-5")
def leave_group(request: LeaveGroupRequest, ctx: Context) -> LeaveGroupResponse | Deferred:
    if not _READ.granted(ctx.allows, request.group_id):
        return LeaveGroupResponse(error_code=_READ.refusal)
    one_by_one = ctx.version < MANY_MEMBERS_SINCE
    if one_by_one:
        request.members = [MemberIdentity(member_id=request.member_id)]

    def decide(machine: GroupMachine, _: Token, now_ms: int) -> Decision[LeaveGroupResponse]:
        decision = decide_leave(machine, request, now_ms)
        return _flat(decision) if one_by_one else decision

    def refuse(code: ErrorCode) -> LeaveGroupResponse:
        if code is ErrorCode.UNKNOWN_MEMBER_ID and not one_by_one:
            # There is no such group: that is a result for each member, as in Kafka.
            return LeaveGroupResponse(members=[_unknown(member) for member in request.members])
        return LeaveGroupResponse(error_code=code)

    return ctx.broker.groups.submit(request.group_id, decide, refuse=refuse)


def _flat(decision: Decision[LeaveGroupResponse]) -> Decision[LeaveGroupResponse]:
    assert decision.response is not None
    (result,) = decision.response.members
    decision.response.error_code = result.error_code
    return decision


def _unknown(member: MemberIdentity) -> MemberResponse:
    return MemberResponse(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        error_code=ErrorCode.UNKNOWN_MEMBER_ID,
    )
