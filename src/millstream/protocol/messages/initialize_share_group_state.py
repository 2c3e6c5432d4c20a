from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, UuidField, message, struct, wire


@struct
class PartitionData:
    partition: Int32
    state_epoch: Int32
    start_offset: Int64


@struct
class InitializeStateData:
    topic_id: UuidField
    partitions: list[PartitionData]


@message(key=83, versions="0", flexible="0+", listeners=("broker",))
class InitializeShareGroupStateRequest:
    """A group coordinator has the share coordinator set up the state of partitions (KIP-932)."""

    group_id: String
    topics: list[InitializeStateData]


@struct
class PartitionResult:
    partition: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)


@struct
class InitializeStateResult:
    topic_id: UuidField
    partitions: list[PartitionResult]


@message(key=83, versions="0", flexible="0+")
class InitializeShareGroupStateResponse:
    """One result per partition."""

    results: list[InitializeStateResult]
