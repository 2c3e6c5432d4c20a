from __future__ import annotations

from millstream.protocol.declare import Int32, String, UuidField, message, struct


@message(coordinator_type=13, versions="0")
class ShareGroupTargetAssignmentMemberKey:
    """What a share group's member shall own (KIP-932)."""

    group_id: String
    member_id: String


@struct
class TopicPartition:
    topic_id: UuidField
    partitions: list[Int32]


@message(coordinator_type=13, versions="0", flexible="0+")
class ShareGroupTargetAssignmentMemberValue:
    """The partitions of the target assignment that fall to the member."""

    topic_partitions: list[TopicPartition]
