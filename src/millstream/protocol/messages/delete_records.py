from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, message, struct, wire


@struct
class DeleteRecordsPartition:
    partition_index: Int32
    offset: Int64


@struct
class DeleteRecordsTopic:
    name: String
    partitions: list[DeleteRecordsPartition]


@message(key=21, versions="0-2", flexible="2+", listeners=("broker",))
class DeleteRecordsRequest:
    """Moves the start of partitions forward, so that everything before it is gone (KIP-107)."""

    topics: list[DeleteRecordsTopic]
    timeout_ms: Int32


@struct
class DeleteRecordsPartitionResult:
    partition_index: Int32
    low_watermark: Int64
    error_code: Int16 = wire(default=0)


@struct
class DeleteRecordsTopicResult:
    name: String
    partitions: list[DeleteRecordsPartitionResult]


@message(key=21, versions="0-2", flexible="2+")
class DeleteRecordsResponse:
    """The new low watermark of each partition."""

    throttle_time_ms: Int32 = wire(default=0)
    topics: list[DeleteRecordsTopicResult]
