from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, UuidField, message, struct, wire


@struct
class AlterShareGroupOffsetsRequestPartition:
    partition_index: Int32
    start_offset: Int64


@struct
class AlterShareGroupOffsetsRequestTopic:
    topic_name: String
    partitions: list[AlterShareGroupOffsetsRequestPartition]


@message(key=91, versions="0", flexible="0+", listeners=("broker",))
class AlterShareGroupOffsetsRequest:
    """Sets where a share group without members goes on reading (KIP-932)."""

    group_id: String
    topics: list[AlterShareGroupOffsetsRequestTopic]


@struct
class AlterShareGroupOffsetsResponsePartition:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)


@struct
class AlterShareGroupOffsetsResponseTopic:
    topic_name: String
    topic_id: UuidField
    partitions: list[AlterShareGroupOffsetsResponsePartition]


@message(key=91, versions="0", flexible="0+")
class AlterShareGroupOffsetsResponse:
    """One result per partition, and one for the group."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic]
