from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UuidField, message, struct, wire


@message(key=76, versions="1", flexible="0+", listeners=("broker",))
class ShareGroupHeartbeatRequest:
    """The one request of a share group's member: joins, keeps alive, leaves (KIP-932)."""

    group_id: String
    member_id: String
    member_epoch: Int32
    rack_id: String | None = wire(default=None)
    subscribed_topic_names: list[String] | None = wire(default=None)


@struct
class TopicPartitions:
    topic_id: UuidField
    partitions: list[Int32]


@struct
class Assignment:
    topic_partitions: list[TopicPartitions]


@message(key=76, versions="1", flexible="0+")
class ShareGroupHeartbeatResponse:
    """The member's epoch, and its assignment when that has changed."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    member_id: String | None = wire(default=None)
    member_epoch: Int32
    heartbeat_interval_ms: Int32
    assignment: Assignment | None = wire(default=None)
