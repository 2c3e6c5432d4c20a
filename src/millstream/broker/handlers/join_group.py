"""JoinGroup: a member enters a classic group, or comes back for its next generation; see groups/classic/joining.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.broker.dispatch import Context, handles
from millstream.groups.classic.answers import join_answer
from millstream.groups.classic.joining import decide_join
from millstream.groups.classic.member import Client
from millstream.protocol.messages.join_group import JoinGroupRequest
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.broker.dispatch import Deferred
    from millstream.groups.machine import GroupMachine
    from millstream.protocol.errors import ErrorCode
    from millstream.protocol.messages.join_group import JoinGroupResponse
    from millstream.replicated import Decision, Token

(_READ,) = needs_of(JoinGroupRequest)


@handles(JoinGroupRequest, versions="0-9")
def join_group(request: JoinGroupRequest, ctx: Context) -> JoinGroupResponse | Deferred:
    version = ctx.version

    def refuse(code: ErrorCode) -> JoinGroupResponse:
        return join_answer(version, member_id=request.member_id, error=code)

    if not _READ.granted(ctx.allows, request.group_id):
        return refuse(_READ.refusal)
    # Java's way to write an address is what Kafka stores, and what its tools show.
    client = Client(ctx.client_id or "", f"/{ctx.connection.peer_host}")

    def decide(machine: GroupMachine, token: Token, now_ms: int) -> Decision[Any]:
        return decide_join(machine, request, version, client, token, now_ms)

    return ctx.broker.groups.submit(request.group_id, decide, refuse=refuse)
