from __future__ import annotations

from millstream.protocol.declare import Int8, Int32, String, UuidField, message, struct, wire


@message(coordinator_type=8, versions="0")
class ConsumerGroupCurrentMemberAssignmentKey:
    """What a KIP-848 member owns at present, by group and member."""

    group_id: String
    member_id: String


@struct
class TopicPartitions:
    topic_id: UuidField
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = wire(default=[], tag=0)


@message(coordinator_type=8, versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue:
    """The member's epochs and state, the partitions it owns and those it still has to give back."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: list[TopicPartitions]
    partitions_pending_revocation: list[TopicPartitions]
