from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, Int64, String, message, struct, wire


@struct
class ListOffsetsPartition:
    partition_index: Int32
    current_leader_epoch: Int32 = wire("4+", default=-1)
    timestamp: Int64


@struct
class ListOffsetsTopic:
    name: String
    partitions: list[ListOffsetsPartition]


@message(key=2, versions="1-11", flexible="6+", listeners=("broker",))
class ListOffsetsRequest:
    """Which offset belongs to a timestamp, or to one of the special ones?

    -1 latest, -2 earliest, v7 -3 highest timestamp (KIP-734), v8 -4 earliest local (KIP-405), v9 -5 latest tiered
    (KIP-1005), v11 -6 earliest that waits for upload (KIP-1023). v2: isolation level. v4: KIP-320, leader epochs.
    """

    # -1 is a consumer; others are followers and may see beyond the high watermark.
    replica_id: Int32
    isolation_level: Int8 = wire("2+", default=0)
    topics: list[ListOffsetsTopic]
    timeout_ms: Int32 = wire("10+", default=0)


@struct
class ListOffsetsPartitionResponse:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    timestamp: Int64 = wire(default=-1)
    offset: Int64 = wire(default=-1)
    leader_epoch: Int32 = wire("4+", default=-1)


@struct
class ListOffsetsTopicResponse:
    name: String
    partitions: list[ListOffsetsPartitionResponse]


@message(key=2, versions="1-11", flexible="6+")
class ListOffsetsResponse:
    """One offset per partition with its timestamp; -1 for none. v4: and its leader epoch."""

    throttle_time_ms: Int32 = wire("2+", default=0)
    topics: list[ListOffsetsTopicResponse]
