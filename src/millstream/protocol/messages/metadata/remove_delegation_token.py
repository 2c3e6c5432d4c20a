from __future__ import annotations

from millstream.protocol.declare import String, message


@message(record_type=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord:
    """Removes a delegation token."""

    token_id: String
