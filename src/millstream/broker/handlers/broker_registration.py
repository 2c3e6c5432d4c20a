"""BrokerRegistration: a broker that starts gets its epoch from the active controller."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.decide_registration import decide_registration
from millstream.protocol.errors import BrokerError
from millstream.protocol.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from millstream.runtime.logs import Logger
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(BrokerRegistrationRequest)
_log = Logger("millstream.controller")


@handles(BrokerRegistrationRequest, versions="0-4")
async def broker_registration(request: BrokerRegistrationRequest, ctx: Context) -> BrokerRegistrationResponse:
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return BrokerRegistrationResponse(error_code=_CLUSTER_ACTION.refusal)
    node = ctx.broker
    try:
        return await node.controller.submit(
            lambda image, _: decide_registration(
                image, request, node.watch.sessions, node.cluster_id, node.ports.clock.monotonic_ms()
            )
        )
    except BrokerError as refusal:
        _log.warning("a broker could not register", broker=request.broker_id, error=str(refusal))
        return BrokerRegistrationResponse(error_code=refusal.code)
