from __future__ import annotations

from millstream.protocol.declare import Bytes, Int16, Int32, Int64, message, wire


@message(key=40, versions="1-2", flexible="2+", listeners=("broker", "controller"))
class ExpireDelegationTokenRequest:
    """Ends a delegation token now or at a time (KIP-48)."""

    hmac: Bytes
    expiry_time_period_ms: Int64


@message(key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """When the token ends."""

    error_code: Int16 = wire(default=0)
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = wire(default=0)
