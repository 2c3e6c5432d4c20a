from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, UuidField, message, struct, wire


@struct
class PartitionData:
    partition_index: Int32


@struct
class TopicData:
    topic_id: UuidField
    partitions: list[PartitionData]


@struct
class DirectoryData:
    id: UuidField
    topics: list[TopicData]


@message(key=73, versions="0", flexible="0+", listeners=("controller",))
class AssignReplicasToDirsRequest:
    """A broker tells the controller in which log directories its copies live (KIP-858)."""

    broker_id: Int32
    broker_epoch: Int64 = wire(default=-1)
    directories: list[DirectoryData]


@struct
class AssignReplicasToDirsResponsePartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)


@struct
class AssignReplicasToDirsResponseTopicData:
    topic_id: UuidField
    partitions: list[AssignReplicasToDirsResponsePartitionData]


@struct
class AssignReplicasToDirsResponseDirectoryData:
    id: UuidField
    topics: list[AssignReplicasToDirsResponseTopicData]


@message(key=73, versions="0", flexible="0+")
class AssignReplicasToDirsResponse:
    """One result per partition."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    directories: list[AssignReplicasToDirsResponseDirectoryData]
