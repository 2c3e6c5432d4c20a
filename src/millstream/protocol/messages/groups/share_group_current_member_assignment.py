from __future__ import annotations

from millstream.protocol.declare import Int8, Int32, String, UuidField, message, struct


@message(coordinator_type=14, versions="0")
class ShareGroupCurrentMemberAssignmentKey:
    """What a share group's member owns at present (KIP-932)."""

    group_id: String
    member_id: String


@struct
class TopicPartitions:
    topic_id: UuidField
    partitions: list[Int32]


@message(coordinator_type=14, versions="0", flexible="0+")
class ShareGroupCurrentMemberAssignmentValue:
    """The member's epochs, state and partitions."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]
