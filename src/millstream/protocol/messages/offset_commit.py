from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class OffsetCommitRequestPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire("6+", default=-1)
    committed_metadata: String | None


@struct
class OffsetCommitRequestTopic:
    name: String = wire("0-9", default="")
    topic_id: UuidField = wire("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitRequestPartition]


@message(key=8, versions="2-10", flexible="8+", listeners=("broker",))
class OffsetCommitRequest:
    """Stores how far a group has read.

    v5 drops the retention time. v6: KIP-320, leader epochs. v7: KIP-345. v9: KIP-848, the generation may be a
    member's epoch. v10: topic ids.
    """

    group_id: String
    generation_id_or_member_epoch: Int32 = wire(default=-1)
    member_id: String
    group_instance_id: String | None = wire("7+", default=None)
    retention_time_ms: Int64 = wire("2-4", default=-1)
    topics: list[OffsetCommitRequestTopic]


@struct
class OffsetCommitResponsePartition:
    partition_index: Int32
    error_code: Int16 = wire(default=0)


@struct
class OffsetCommitResponseTopic:
    name: String = wire("0-9", default="")
    topic_id: UuidField = wire("10+", default=ZERO_UUID)
    partitions: list[OffsetCommitResponsePartition]


@message(key=8, versions="2-10", flexible="8+")
class OffsetCommitResponse:
    """One result per partition."""

    throttle_time_ms: Int32 = wire("3+", default=0)
    topics: list[OffsetCommitResponseTopic]
