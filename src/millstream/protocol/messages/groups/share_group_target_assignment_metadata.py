from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, String, message, wire


@message(coordinator_type=12, versions="0")
class ShareGroupTargetAssignmentMetadataKey:
    """The target assignment of a share group as a whole (KIP-932)."""

    group_id: String


@message(coordinator_type=12, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMetadataValue:
    """The epoch that the target assignment belongs to. KIP-1263: and when it was computed."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = wire(default=0, tag=0)
