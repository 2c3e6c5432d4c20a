from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, String, UuidField, message, struct, wire


@message(key=77, versions="1", flexible="0+", listeners=("broker",))
class ShareGroupDescribeRequest:
    """Asks for the state of share groups (KIP-932)."""

    group_ids: list[String]
    include_authorized_operations: Bool


@struct
class TopicPartitions:
    topic_id: UuidField
    topic_name: String
    partitions: list[Int32]


@struct
class Assignment:
    topic_partitions: list[TopicPartitions]


@struct
class Member:
    member_id: String
    rack_id: String | None = wire(default=None)
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    assignment: Assignment


@struct
class DescribedGroup:
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    group_id: String
    group_state: String
    group_epoch: Int32
    assignment_epoch: Int32
    assignor_name: String
    members: list[Member]
    authorized_operations: Int32 = wire(default=-2147483648)


@message(key=77, versions="1", flexible="0+")
class ShareGroupDescribeResponse:
    """Members, epochs and assignments of each group."""

    throttle_time_ms: Int32 = wire(default=0)
    groups: list[DescribedGroup]
