from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, struct, wire


@struct
class OffsetDeleteRequestPartition:
    partition_index: Int32


@struct
class OffsetDeleteRequestTopic:
    name: String
    partitions: list[OffsetDeleteRequestPartition]


@message(key=47, versions="0", listeners=("broker",))
class OffsetDeleteRequest:
    """Forgets offsets of a group for partitions that it does not read any more (KIP-496)."""

    group_id: String
    topics: list[OffsetDeleteRequestTopic]


@struct
class OffsetDeleteResponsePartition:
    partition_index: Int32
    error_code: Int16 = wire(default=0)


@struct
class OffsetDeleteResponseTopic:
    name: String
    partitions: list[OffsetDeleteResponsePartition]


@message(key=47, versions="0")
class OffsetDeleteResponse:
    """One result per partition, and one for the group."""

    error_code: Int16 = wire(default=0)
    throttle_time_ms: Int32 = wire(default=0)
    topics: list[OffsetDeleteResponseTopic]
