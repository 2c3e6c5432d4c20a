"""FindCoordinator: who looks after a group, a transactional id or a share partition.

Nobody does yet on this broker, and the answer says so: COORDINATOR_NOT_AVAILABLE, with a sentence. Clients take it
for a passing state and ask again until their own timeout, which is right: the next version of this broker may answer.
Up to version 3 a request asks for one key and the answer is flat; since version 4 it may ask for many (KIP-699).
"""

from __future__ import annotations

from typing import NamedTuple

from millstream.broker.dispatch import Context, handles
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from millstream.security.operations import needs_of

GROUP, TRANSACTION, SHARE = 0, 1, 2
MANY_KEYS_SINCE = 4
SHARE_SINCE = 6
NO_NODE = -1

_NEEDS = dict(zip((GROUP, TRANSACTION, SHARE), needs_of(FindCoordinatorRequest), strict=True))
_NAMES = {GROUP: "Groups", TRANSACTION: "Transactions", SHARE: "Share groups"}


class _Refusal(NamedTuple):
    code: ErrorCode
    message: str


@handles(FindCoordinatorRequest, versions="0-6")
def find_coordinator(request: FindCoordinatorRequest, ctx: Context) -> FindCoordinatorResponse:
    if ctx.version >= MANY_KEYS_SINCE:
        return FindCoordinatorResponse(
            coordinators=[_coordinator(key, _look_up(key, request.key_type, ctx)) for key in request.coordinator_keys]
        )
    refusal = _look_up(request.key, request.key_type, ctx)
    return FindCoordinatorResponse(
        error_code=refusal.code, error_message=refusal.message, node_id=NO_NODE, host="", port=-1
    )


def _coordinator(key: str, refusal: _Refusal) -> Coordinator:
    return Coordinator(
        key=key, node_id=NO_NODE, host="", port=-1, error_code=refusal.code, error_message=refusal.message
    )


def _look_up(key: str, key_type: int, ctx: Context) -> _Refusal:
    need = _NEEDS.get(key_type)
    if need is None or (key_type == SHARE and ctx.version < SHARE_SINCE):
        return _Refusal(ErrorCode.INVALID_REQUEST, f"{key_type} is no kind of coordinator in this version.")
    if not need.granted(ctx.allows, key):
        return _Refusal(need.refusal, "Describing this is not allowed.")
    return _Refusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{_NAMES[key_type]} are not served by this broker yet.")
