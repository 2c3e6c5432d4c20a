from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, String, UuidField, message, struct, wire


@message(key=69, versions="0-1", flexible="0+", listeners=("broker",))
class ConsumerGroupDescribeRequest:
    """Asks for the state of KIP-848 groups."""

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
    instance_id: String | None = wire(default=None)
    rack_id: String | None = wire(default=None)
    member_epoch: Int32
    client_id: String
    client_host: String
    subscribed_topic_names: list[String]
    subscribed_topic_regex: String | None = wire(default=None)
    assignment: Assignment
    target_assignment: Assignment
    member_type: Int8 = wire("1+", default=-1)


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


@message(key=69, versions="0-1", flexible="0+")
class ConsumerGroupDescribeResponse:
    """Members, epochs and assignments of each group. v1: KIP-1099, classic members are told from new ones."""

    throttle_time_ms: Int32 = wire(default=0)
    groups: list[DescribedGroup]
