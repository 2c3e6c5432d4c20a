from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, Int64, String, UuidField, message, struct, wire


@struct
class PartitionData:
    partition: Int32
    leader_epoch: Int32


@struct
class ReadStateData:
    topic_id: UuidField
    partitions: list[PartitionData]


@message(key=84, versions="0", flexible="0+", listeners=("broker",))
class ReadShareGroupStateRequest:
    """A share-partition leader reads the state that it left off with (KIP-932)."""

    group_id: String
    topics: list[ReadStateData]


@struct
class StateBatch:
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@struct
class PartitionResult:
    partition: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    state_epoch: Int32
    start_offset: Int64
    state_batches: list[StateBatch]


@struct
class ReadStateResult:
    topic_id: UuidField
    partitions: list[PartitionResult]


@message(key=84, versions="0", flexible="0+")
class ReadShareGroupStateResponse:
    """State epoch, start offset and the batches in flight."""

    results: list[ReadStateResult]
