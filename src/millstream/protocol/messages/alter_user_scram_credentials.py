from __future__ import annotations

from millstream.protocol.declare import Bytes, Int8, Int16, Int32, String, message, struct, wire


@struct
class ScramCredentialDeletion:
    name: String
    mechanism: Int8


@struct
class ScramCredentialUpsertion:
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


@message(key=51, versions="0", flexible="0+", listeners=("broker", "controller"))
class AlterUserScramCredentialsRequest:
    """Creates, changes or removes SCRAM credentials of users (KIP-554).

    The password never travels: the client salts and hashes it.
    """

    deletions: list[ScramCredentialDeletion]
    upsertions: list[ScramCredentialUpsertion]


@struct
class AlterUserScramCredentialsResult:
    user: String
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")


@message(key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """One result per user."""

    throttle_time_ms: Int32 = wire(default=0)
    results: list[AlterUserScramCredentialsResult]
