"""ControllerRegistration: a controller that is not active tells the active one where it listens (KIP-919)."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.decide_registration import decide_controller_registration
from millstream.protocol.errors import BrokerError
from millstream.protocol.messages.controller_registration import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(ControllerRegistrationRequest)


@handles(ControllerRegistrationRequest, versions="0")
async def controller_registration(
    request: ControllerRegistrationRequest, ctx: Context
) -> ControllerRegistrationResponse:
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return ControllerRegistrationResponse(error_code=_CLUSTER_ACTION.refusal, error_message=None)
    try:
        return await ctx.broker.controller.submit(lambda image, _: decide_controller_registration(image, request))
    except BrokerError as refusal:
        return ControllerRegistrationResponse(error_code=refusal.code, error_message=refusal.message)
