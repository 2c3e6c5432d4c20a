from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, Int64, String, UuidField, message, struct, wire


@struct
class StateBatch:
    first_offset: Int64
    last_offset: Int64
    delivery_state: Int8
    delivery_count: Int16


@struct
class PartitionData:
    partition: Int32
    state_epoch: Int32
    leader_epoch: Int32
    start_offset: Int64
    delivery_complete_count: Int32 = wire("1+", default=-1)
    state_batches: list[StateBatch]


@struct
class WriteStateData:
    topic_id: UuidField
    partitions: list[PartitionData]


@message(key=85, versions="0-1", flexible="0+", listeners=("broker",))
class WriteShareGroupStateRequest:
    """A share-partition leader stores how its deliveries stand (KIP-932). v1: KIP-1226, how many are complete."""

    group_id: String
    topics: list[WriteStateData]


@struct
class PartitionResult:
    partition: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)


@struct
class WriteStateResult:
    topic_id: UuidField
    partitions: list[PartitionResult]


@message(key=85, versions="0-1", flexible="0+")
class WriteShareGroupStateResponse:
    """One result per partition."""

    results: list[WriteStateResult]
