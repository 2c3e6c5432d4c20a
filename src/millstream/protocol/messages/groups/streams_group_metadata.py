from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, String, message, struct, wire


@message(coordinator_type=17, versions="0")
class StreamsGroupMetadataKey:
    """A Streams group (KIP-1071)."""

    group_id: String


@struct
class LastAssignmentConfig:
    key: String
    value: String


@message(coordinator_type=17, versions="0", flexible="0+")
class StreamsGroupMetadataValue:
    """The group's epoch, its topology's validation and the settings of its last assignment."""

    epoch: Int32
    metadata_hash: Int64
    validated_topology_epoch: Int32 = wire(default=-1, tag=0)
    last_assignment_configs: list[LastAssignmentConfig] | None = wire(default=[], tag=1)
