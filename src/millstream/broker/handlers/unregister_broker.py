"""UnregisterBroker: the cluster forgets a broker that will not come back."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.decide_unregister_broker import decide_unregister_broker
from millstream.protocol.errors import BrokerError
from millstream.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from millstream.security.operations import needs_of

(_ALTER,) = needs_of(UnregisterBrokerRequest)


@handles(UnregisterBrokerRequest, versions="0", forwards=True)
async def unregister_broker(request: UnregisterBrokerRequest, ctx: Context) -> UnregisterBrokerResponse:
    if not _ALTER.granted(ctx.allows):
        return UnregisterBrokerResponse(error_code=_ALTER.refusal, error_message="Altering the cluster is not allowed.")
    try:
        return await ctx.broker.controller.submit(lambda image, _: decide_unregister_broker(image, request))
    except BrokerError as refusal:
        return UnregisterBrokerResponse(error_code=refusal.code, error_message=refusal.message)
