from __future__ import annotations

from millstream.protocol.declare import Bytes, Int16, Int32, Int64, String, message, struct, wire


@struct
class CreatableRenewers:
    principal_type: String
    principal_name: String


@message(key=38, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class CreateDelegationTokenRequest:
    """Asks for a token that logs in without a password (KIP-48). v3: KIP-373, on behalf of another owner."""

    owner_principal_type: String | None = wire("3+", default="")
    owner_principal_name: String | None = wire("3+", default="")
    renewers: list[CreatableRenewers]
    max_lifetime_ms: Int64


@message(key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    """The token, its secret and its times. v3: who asked for it."""

    error_code: Int16 = wire(default=0)
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = wire("3+", default="")
    token_requester_principal_name: String = wire("3+", default="")
    issue_timestamp_ms: Int64
    expiry_timestamp_ms: Int64
    max_timestamp_ms: Int64
    token_id: String
    hmac: Bytes
    throttle_time_ms: Int32 = wire(default=0)
