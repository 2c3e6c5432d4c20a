"""Heartbeat: a member of a classic group keeps its place, and hears of rebalances; see groups/classic/leaving.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.groups.classic.leaving import decide_heartbeat
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.broker.dispatch import Deferred

(_READ,) = needs_of(HeartbeatRequest)


@handles(HeartbeatRequest, versions="0-4")
def heartbeat(request: HeartbeatRequest, ctx: Context) -> HeartbeatResponse | Deferred:
    if not _READ.granted(ctx.allows, request.group_id):
        return HeartbeatResponse(error_code=_READ.refusal)
    return ctx.broker.groups.submit(
        request.group_id, lambda machine, _token, _now_ms: decide_heartbeat(machine, request), refuse=_refuse
    )


def _refuse(code: ErrorCode) -> HeartbeatResponse:
    # Nobody can tell yet whether the member is one; its session starts anew once the log has been read.
    return HeartbeatResponse(error_code=ErrorCode.NONE if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else code)
