from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, wire


@message(key=64, versions="0", flexible="0+", listeners=("broker", "controller"))
class UnregisterBrokerRequest:
    """Removes the registration of a broker that will not come back (KIP-631)."""

    broker_id: Int32


@message(key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    """Says whether the registration is gone."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
