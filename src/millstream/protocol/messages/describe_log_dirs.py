from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, message, struct, wire


@struct
class DescribableLogDirTopic:
    topic: String
    partitions: list[Int32]


@message(key=35, versions="1-5", flexible="2+", listeners=("broker",))
class DescribeLogDirsRequest:
    """Asks what the broker's log directories hold; null asks for every topic (KIP-113)."""

    topics: list[DescribableLogDirTopic] | None


@struct
class DescribeLogDirsPartition:
    partition_index: Int32
    partition_size: Int64
    offset_lag: Int64
    is_future_key: Bool


@struct
class DescribeLogDirsTopic:
    name: String
    partitions: list[DescribeLogDirsPartition]


@struct
class DescribeLogDirsResult:
    error_code: Int16 = wire(default=0)
    log_dir: String
    topics: list[DescribeLogDirsTopic]
    total_bytes: Int64 = wire("4+", default=-1)
    usable_bytes: Int64 = wire("4+", default=-1)
    is_cordoned: Bool = wire("5+", default=False)


@message(key=35, versions="1-5", flexible="2+")
class DescribeLogDirsResponse:
    """Sizes per directory and partition. v3: one error for all. v4: KIP-827, space of the disk. v5: KIP-1066,
    cordoned.
    """

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire("3+", default=0)
    results: list[DescribeLogDirsResult]
