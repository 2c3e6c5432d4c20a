from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UuidField, message, struct, wire


@struct
class PartitionData:
    partition: Int32


@struct
class DeleteStateData:
    topic_id: UuidField
    partitions: list[PartitionData]


@message(key=86, versions="0", flexible="0+", listeners=("broker",))
class DeleteShareGroupStateRequest:
    """A group coordinator has the share coordinator forget the state of partitions (KIP-932)."""

    group_id: String
    topics: list[DeleteStateData]


@struct
class PartitionResult:
    partition: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)


@struct
class DeleteStateResult:
    topic_id: UuidField
    partitions: list[PartitionResult]


@message(key=86, versions="0", flexible="0+")
class DeleteShareGroupStateResponse:
    """One result per partition."""

    results: list[DeleteStateResult]
