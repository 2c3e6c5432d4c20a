from __future__ import annotations

from millstream.protocol.declare import Int32, String, UuidField, message, struct


@message(coordinator_type=7, versions="0")
class ConsumerGroupTargetAssignmentMemberKey:
    """What a KIP-848 member shall own, by group and member."""

    group_id: String
    member_id: String


@struct
class TopicPartition:
    topic_id: UuidField
    partitions: list[Int32]


@message(coordinator_type=7, versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue:
    """The partitions of the target assignment that fall to the member."""

    topic_partitions: list[TopicPartition]
