from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, struct, wire


@struct
class ListPartitionReassignmentsTopics:
    name: String
    partition_indexes: list[Int32]


@message(key=46, versions="0", flexible="0+", listeners=("broker", "controller"))
class ListPartitionReassignmentsRequest:
    """Lists the partitions that are being moved; null asks about all (KIP-455)."""

    timeout_ms: Int32 = wire(default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = wire(default=None)


@struct
class OngoingPartitionReassignment:
    partition_index: Int32
    replicas: list[Int32]
    adding_replicas: list[Int32]
    removing_replicas: list[Int32]


@struct
class OngoingTopicReassignment:
    name: String
    partitions: list[OngoingPartitionReassignment]


@message(key=46, versions="0", flexible="0+")
class ListPartitionReassignmentsResponse:
    """Present, added and removed replicas of each partition on the move."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default="")
    topics: list[OngoingTopicReassignment]
