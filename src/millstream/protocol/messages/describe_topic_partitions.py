from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, String, UuidField, message, struct, wire


@struct
class TopicRequest:
    name: String


@struct
class Cursor:
    topic_name: String
    partition_index: Int32


@message(key=75, versions="0", flexible="0+", listeners=("broker",))
class DescribeTopicPartitionsRequest:
    """Reads topics page by page (KIP-966): what Metadata says, and the eligible leader replicas."""

    topics: list[TopicRequest]
    response_partition_limit: Int32 = wire(default=2000)
    cursor: Cursor | None = wire(default=None)


@struct
class DescribeTopicPartitionsResponsePartition:
    error_code: Int16 = wire(default=0)
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32 = wire(default=-1)
    replica_nodes: list[Int32]
    isr_nodes: list[Int32]
    eligible_leader_replicas: list[Int32] | None = wire(default=None)
    last_known_elr: list[Int32] | None = wire(default=None)
    offline_replicas: list[Int32]


@struct
class DescribeTopicPartitionsResponseTopic:
    error_code: Int16 = wire(default=0)
    name: String | None
    topic_id: UuidField
    is_internal: Bool = wire(default=False)
    partitions: list[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: Int32 = wire(default=-2147483648)


@message(key=75, versions="0", flexible="0+")
class DescribeTopicPartitionsResponse:
    """One page; the cursor, unless null, asks for the next."""

    throttle_time_ms: Int32 = wire(default=0)
    topics: list[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None = wire(default=None)
