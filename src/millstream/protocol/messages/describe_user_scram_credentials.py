from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, String, message, struct, wire


@struct
class UserName:
    name: String


@message(key=50, versions="0", flexible="0+", listeners=("broker", "controller"))
class DescribeUserScramCredentialsRequest:
    """Lists which SCRAM mechanisms users have credentials for (KIP-554)."""

    users: list[UserName] | None


@struct
class CredentialInfo:
    mechanism: Int8
    iterations: Int32


@struct
class DescribeUserScramCredentialsResult:
    user: String
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    credential_infos: list[CredentialInfo]


@message(key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """Mechanisms and iterations; never salts or keys."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    results: list[DescribeUserScramCredentialsResult]
