from __future__ import annotations

from millstream.protocol.declare import Bytes, Int16, message, wire


@message(key=58, versions="0", flexible="0+", listeners=("controller",))
class EnvelopeRequest:
    """A request that a broker forwards to the controller for a client, with the client's principal (KIP-590)."""

    request_data: Bytes
    request_principal: Bytes | None
    client_host_address: Bytes


@message(key=58, versions="0", flexible="0+")
class EnvelopeResponse:
    """The answer to the request inside; the error code is the envelope's own."""

    response_data: Bytes | None = wire(default=None)
    error_code: Int16 = wire(default=0)
