from __future__ import annotations

from millstream.protocol.declare import Bytes, Int16, Int32, Int64, message, wire


@message(key=39, versions="1-2", flexible="2+", listeners=("broker", "controller"))
class RenewDelegationTokenRequest:
    """Extends a delegation token up to its maximum (KIP-48)."""

    hmac: Bytes
    renew_period_ms: Int64


@message(key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    """When the token ends now."""

    error_code: Int16 = wire(default=0)
    expiry_timestamp_ms: Int64
    throttle_time_ms: Int32 = wire(default=0)
