from __future__ import annotations

from millstream.protocol.declare import Int16, String, message, wire


@message(key=17, versions="0-1", listeners=("broker", "controller"))
class SaslHandshakeRequest:
    """Chooses the SASL mechanism. v1: the exchange then travels in SaslAuthenticate requests instead of bare tokens."""

    mechanism: String


@message(key=17, versions="0-1")
class SaslHandshakeResponse:
    """Accepts, or lists the mechanisms on offer. It stays inflexible: old clients negotiate it wrongly (KAFKA-9577)."""

    error_code: Int16 = wire(default=0)
    mechanisms: list[String]
