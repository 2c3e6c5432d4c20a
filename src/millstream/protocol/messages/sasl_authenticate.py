from __future__ import annotations

from millstream.protocol.declare import Bytes, Int16, Int64, String, message, wire


@message(key=36, versions="0-2", flexible="2+", listeners=("broker", "controller"))
class SaslAuthenticateRequest:
    """One step of the SASL mechanism's own exchange."""

    auth_bytes: Bytes


@message(key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """The broker's step. v1: KIP-368, how long the session lasts before the client must authenticate again."""

    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    auth_bytes: Bytes
    # 0 is for ever.
    session_lifetime_ms: Int64 = wire("1+", default=0)
