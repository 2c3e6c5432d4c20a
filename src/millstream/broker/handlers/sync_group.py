"""SyncGroup: the leader brings the assignment, the others fetch theirs; see groups/classic/syncing.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.broker.dispatch import Context, handles
from millstream.groups.classic.answers import sync_answer
from millstream.groups.classic.syncing import decide_sync
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.sync_group import SyncGroupRequest
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.broker.dispatch import Deferred
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.sync_group import SyncGroupResponse
    from millstream.replicated import Decision, Token

PROTOCOL_NAMED_SINCE = 5

(_READ,) = needs_of(SyncGroupRequest)


@handles(SyncGroupRequest, versions="0-5")
def sync_group(request: SyncGroupRequest, ctx: Context) -> SyncGroupResponse | Deferred:
    version = ctx.version
    if version >= PROTOCOL_NAMED_SINCE and (request.protocol_type is None or request.protocol_name is None):
        return sync_answer(error=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not _READ.granted(ctx.allows, request.group_id):
        return sync_answer(error=_READ.refusal)

    def decide(machine: GroupMachine, token: Token, now_ms: int) -> Decision[Any]:
        return decide_sync(machine, request, version, token, now_ms)

    return ctx.broker.groups.submit(request.group_id, decide, refuse=_refuse)


def _refuse(code: ErrorCode) -> SyncGroupResponse:
    return sync_answer(error=code)
