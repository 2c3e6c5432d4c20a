from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, message, struct, wire


@struct
class OffsetForLeaderPartition:
    partition: Int32
    current_leader_epoch: Int32 = wire(default=-1)
    leader_epoch: Int32


@struct
class OffsetForLeaderTopic:
    topic: String
    partitions: list[OffsetForLeaderPartition]


@message(key=23, versions="2-4", flexible="4+", listeners=("broker",))
class OffsetForLeaderEpochRequest:
    """Where did this leader epoch end? Answers tell whether a log has been truncated (KIP-101, KIP-320)."""

    # -2 is a debugging consumer, which may see beyond the high watermark.
    replica_id: Int32 = wire("3+", default=-2)
    topics: list[OffsetForLeaderTopic]


@struct
class EpochEndOffset:
    error_code: Int16 = wire(default=0)
    partition: Int32
    leader_epoch: Int32 = wire(default=-1)
    end_offset: Int64 = wire(default=-1)


@struct
class OffsetForLeaderTopicResult:
    topic: String
    partitions: list[EpochEndOffset]


@message(key=23, versions="2-4", flexible="4+")
class OffsetForLeaderEpochResponse:
    """The end offset of the largest epoch that is not above the one asked for."""

    throttle_time_ms: Int32 = wire(default=0)
    topics: list[OffsetForLeaderTopicResult]
