from __future__ import annotations

from millstream.protocol.declare import Bytes, Int8, Int32, String, message


@message(record_type=11, versions="0", flexible="0+")
class UserScramCredentialRecord:
    """Sets a user's credential for one SCRAM mechanism (KIP-900)."""

    name: String
    mechanism: Int8
    salt: Bytes
    stored_key: Bytes
    server_key: Bytes
    iterations: Int32
