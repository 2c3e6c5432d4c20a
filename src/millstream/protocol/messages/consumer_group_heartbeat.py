from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UuidField, message, struct, wire


@struct
class TopicPartitions:
    topic_id: UuidField
    partitions: list[Int32]


@message(key=68, versions="0-1", flexible="0+", listeners=("broker",))
class ConsumerGroupHeartbeatRequest:
    """The one request of a KIP-848 member: joins, keeps alive, reports, leaves.

    A null field means unchanged since the last heartbeat. Epoch 0 joins, -1 leaves, -2 leaves and keeps a static
    place. v1: subscription by pattern; members make up their own ids (KIP-1082).
    """

    group_id: String
    member_id: String
    # 0 joins, -1 leaves, -2 leaves and keeps the static member's place.
    member_epoch: Int32
    instance_id: String | None = wire(default=None)
    rack_id: String | None = wire(default=None)
    rebalance_timeout_ms: Int32 = wire(default=-1)
    subscribed_topic_names: list[String] | None = wire(default=None)
    subscribed_topic_regex: String | None = wire("1+", default=None)
    server_assignor: String | None = wire(default=None)
    topic_partitions: list[TopicPartitions] | None = wire(default=None)


@struct
class Assignment:
    topic_partitions: list[TopicPartitions]


@message(key=68, versions="0-1", flexible="0+")
class ConsumerGroupHeartbeatResponse:
    """The member's epoch, and its assignment when that has changed; null when not."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    member_id: String | None = wire(default=None)
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = wire(default=None)
