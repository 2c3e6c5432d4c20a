from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, String, message, wire


@message(coordinator_type=6, versions="0")
class ConsumerGroupTargetAssignmentMetadataKey:
    """The target assignment of a KIP-848 group as a whole."""

    group_id: String


@message(coordinator_type=6, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue:
    """The epoch that the target assignment belongs to. KIP-1263: and when it was computed."""

    assignment_epoch: Int32
    assignment_timestamp: Int64 = wire(default=0, tag=0)
