"""BrokerHeartbeat: the active controller hears that a broker lives, and tells it whether it is fenced and may stop."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.decide_heartbeat import decide_heartbeat
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(BrokerHeartbeatRequest)


@handles(BrokerHeartbeatRequest, versions="0-2")
async def broker_heartbeat(request: BrokerHeartbeatRequest, ctx: Context) -> BrokerHeartbeatResponse:
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return _refused(_CLUSTER_ACTION.refusal)
    node = ctx.broker
    node.watch.heard_from(request.broker_id, request.broker_epoch, ctx.connection)
    try:
        answer: BrokerHeartbeatResponse = await node.controller.submit(
            lambda image, _: decide_heartbeat(image, request, node.watch.sessions, node.ports.clock.monotonic_ms())
        )
    except BrokerError as refusal:
        return _refused(refusal.code)
    if not node.controller.standing.is_followed(node.ports.clock.monotonic_ms()):
        # Others may have elected another one by now, and the broker goes by the answer (touch.py).
        return _refused(ErrorCode.NOT_CONTROLLER)
    return answer


def _refused(code: ErrorCode) -> BrokerHeartbeatResponse:
    return BrokerHeartbeatResponse(error_code=code, should_shut_down=False)
