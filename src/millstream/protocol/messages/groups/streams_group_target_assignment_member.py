from __future__ import annotations

from millstream.protocol.declare import Int32, String, message, struct


@message(coordinator_type=21, versions="0")
class StreamsGroupTargetAssignmentMemberKey:
    """The tasks that a Streams member shall run (KIP-1071)."""

    group_id: String
    member_id: String


@struct
class TaskIds:
    subtopology_id: String
    partitions: list[Int32]


@message(coordinator_type=21, versions="0", flexible="0+")
class StreamsGroupTargetAssignmentMemberValue:
    """Active, standby and warm-up tasks of the target assignment that fall to the member."""

    active_tasks: list[TaskIds]
    standby_tasks: list[TaskIds]
    warmup_tasks: list[TaskIds]
