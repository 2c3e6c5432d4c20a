from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, UuidField, message, struct, wire


@struct
class PartitionData:
    partition: Int32
    leader_epoch: Int32


@struct
class ReadStateSummaryData:
    topic_id: UuidField
    partitions: list[PartitionData]


@message(key=87, versions="0-1", flexible="0+", listeners=("broker",))
class ReadShareGroupStateSummaryRequest:
    """Asks for a share partition's position without its batches (KIP-932)."""

    group_id: String
    topics: list[ReadStateSummaryData]


@struct
class PartitionResult:
    partition: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = wire("1+", default=-1)


@struct
class ReadStateSummaryResult:
    topic_id: UuidField
    partitions: list[PartitionResult]


@message(key=87, versions="0-1", flexible="0+")
class ReadShareGroupStateSummaryResponse:
    """The position. v1: KIP-1226, how many deliveries are complete."""

    results: list[ReadStateSummaryResult]
