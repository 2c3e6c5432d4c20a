from __future__ import annotations

from millstream.protocol.declare import Int8, Int32, String, message, struct, wire


@message(coordinator_type=22, versions="0")
class StreamsGroupCurrentMemberAssignmentKey:
    """The tasks that a Streams member runs at present (KIP-1071)."""

    group_id: String
    member_id: String


@struct
class TaskIds:
    subtopology_id: String
    partitions: list[Int32]
    assignment_epochs: list[Int32] | None = wire(default=[], tag=0)


@message(coordinator_type=22, versions="0", flexible="0+")
class StreamsGroupCurrentMemberAssignmentValue:
    """The member's epochs and state, its tasks and those that it still has to give back."""

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]
    active_tasks_pending_revocation: list[TaskIds]
    standby_tasks_pending_revocation: list[TaskIds]
    warmup_tasks_pending_revocation: list[TaskIds]
