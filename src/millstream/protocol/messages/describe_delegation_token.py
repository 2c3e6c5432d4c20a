from __future__ import annotations

from millstream.protocol.declare import Bytes, Int16, Int32, Int64, String, message, struct, wire


@struct
class DescribeDelegationTokenOwner:
    principal_type: String
    principal_name: String


@message(key=41, versions="1-3", flexible="2+", listeners=("broker", "controller"))
class DescribeDelegationTokenRequest:
    """Lists the delegation tokens of owners; null asks for all (KIP-48)."""

    owners: list[DescribeDelegationTokenOwner] | None


@struct
class DescribedDelegationTokenRenewer:
    principal_type: String
    principal_name: String


@struct
class DescribedDelegationToken:
    principal_type: String
    principal_name: String
    token_requester_principal_type: String = wire("3+", default="")
    token_requester_principal_name: String = wire("3+", default="")
    issue_timestamp: Int64
    expiry_timestamp: Int64
    max_timestamp: Int64
    token_id: String
    hmac: Bytes
    renewers: list[DescribedDelegationTokenRenewer]


@message(key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """The tokens that the principal may see. v3: KIP-373, who asked for each."""

    error_code: Int16 = wire(default=0)
    tokens: list[DescribedDelegationToken]
    throttle_time_ms: Int32 = wire(default=0)
