from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, message, struct, wire


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: Int32
    committed_offset: Int64
    committed_leader_epoch: Int32 = wire("2+", default=-1)
    committed_metadata: String | None


@struct
class TxnOffsetCommitRequestTopic:
    name: String
    partitions: list[TxnOffsetCommitRequestPartition]


@message(key=28, versions="0-5", flexible="3+", listeners=("broker",))
class TxnOffsetCommitRequest:
    """Stores offsets as part of a transaction.

    v2: KIP-320. v3: KIP-447, fenced by member and generation. v5: KIP-890, also adds the offsets partition.
    """

    transactional_id: String
    group_id: String
    producer_id: Int64
    producer_epoch: Int16
    generation_id: Int32 = wire("3+", default=-1)
    member_id: String = wire("3+", default="")
    group_instance_id: String | None = wire("3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic]


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: Int32
    error_code: Int16 = wire(default=0)


@struct
class TxnOffsetCommitResponseTopic:
    name: String
    partitions: list[TxnOffsetCommitResponsePartition]


@message(key=28, versions="0-5", flexible="3+")
class TxnOffsetCommitResponse:
    """One result per partition; the offsets count once the transaction commits."""

    throttle_time_ms: Int32 = wire(default=0)
    topics: list[TxnOffsetCommitResponseTopic]
