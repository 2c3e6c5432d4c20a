"""Envelope: a request that a broker sends on for its client, handled as if the client had asked here (KIP-590)."""

from __future__ import annotations

from millstream.broker.dispatch import HANDLERS, Context, ForwardedContext, answer_of, handles
from millstream.broker.forwarding import decode_address, decode_principal
from millstream.protocol.apis import api
from millstream.protocol.codec import decoder
from millstream.protocol.errors import ErrorCode, MalformedMessage, NotController
from millstream.protocol.frames import decode_request_header, encode_response
from millstream.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(EnvelopeRequest)


@handles(EnvelopeRequest, versions="0")
async def envelope(request: EnvelopeRequest, ctx: Context) -> EnvelopeResponse:
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return EnvelopeResponse(error_code=_CLUSTER_ACTION.refusal)
    if not ctx.broker.controller.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    frame = bytes(request.request_data)
    try:
        api_key, version, correlation_id, client_id, body = decode_request_header(frame)
        handling = HANDLERS.get(api_key)
        if handling is None or not handling.forwards:
            return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
        if version not in handling.served:
            return EnvelopeResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        inside, _ = decoder(api(api_key).request, version)(memoryview(frame), body)
        if request.request_principal is None:
            return EnvelopeResponse(error_code=ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
        principal = decode_principal(bytes(request.request_principal))
    except MalformedMessage:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    client = ForwardedContext(
        ctx, api_key, version, client_id, principal, decode_address(bytes(request.client_host_address))
    )
    try:
        response = await answer_of(handling.call(inside, client))
    except NotController:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if getattr(response, "error_code", ErrorCode.NONE) == ErrorCode.NOT_CONTROLLER:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    return EnvelopeResponse(response_data=encode_response(api_key, version, correlation_id, response)[4:])
