from __future__ import annotations

from millstream.protocol.declare import Int8, String, message


@message(record_type=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord:
    """Removes a user's credential for one SCRAM mechanism (KIP-900)."""

    name: String
    mechanism: Int8
