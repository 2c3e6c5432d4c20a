from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, UuidField, message, struct, wire


@struct
class DescribeShareGroupOffsetsRequestTopic:
    topic_name: String
    partitions: list[Int32]


@struct
class DescribeShareGroupOffsetsRequestGroup:
    group_id: String
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None


@message(key=90, versions="0-1", flexible="0+", listeners=("broker",))
class DescribeShareGroupOffsetsRequest:
    """Asks where share groups stand (KIP-932); null topics ask for all."""

    groups: list[DescribeShareGroupOffsetsRequestGroup]


@struct
class DescribeShareGroupOffsetsResponsePartition:
    partition_index: Int32
    start_offset: Int64
    leader_epoch: Int32
    lag: Int64 = wire("1+", default=-1)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)


@struct
class DescribeShareGroupOffsetsResponseTopic:
    topic_name: String
    topic_id: UuidField
    partitions: list[DescribeShareGroupOffsetsResponsePartition]


@struct
class DescribeShareGroupOffsetsResponseGroup:
    group_id: String
    topics: list[DescribeShareGroupOffsetsResponseTopic]
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)


@message(key=90, versions="0-1", flexible="0+")
class DescribeShareGroupOffsetsResponse:
    """Start offsets per partition. v1: KIP-1226, the lag."""

    throttle_time_ms: Int32 = wire(default=0)
    groups: list[DescribeShareGroupOffsetsResponseGroup]
