from __future__ import annotations

from millstream.protocol.declare import Int64, String, message


@message(record_type=10, versions="0", flexible="0+")
class DelegationTokenRecord:
    """Creates or renews a delegation token. The secret is not in it; it follows from the token's id."""

    owner: String
    requester: String
    renewers: list[String]
    issue_timestamp: Int64
    max_timestamp: Int64
    expiration_timestamp: Int64
    token_id: String
