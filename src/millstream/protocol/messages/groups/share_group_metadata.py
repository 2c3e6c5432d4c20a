from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, String, message


@message(coordinator_type=11, versions="0")
class ShareGroupMetadataKey:
    """A share group (KIP-932)."""

    group_id: String


@message(coordinator_type=11, versions="0", flexible="0+")
class ShareGroupMetadataValue:
    """The group's epoch and the hash of its topics."""

    epoch: Int32
    metadata_hash: Int64
