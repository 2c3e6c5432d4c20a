from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, message, struct, wire


@struct
class AlterReplicaLogDirTopic:
    name: String
    partitions: list[Int32]


@struct
class AlterReplicaLogDir:
    path: String
    topics: list[AlterReplicaLogDirTopic]


@message(key=34, versions="1-2", flexible="2+", listeners=("broker",))
class AlterReplicaLogDirsRequest:
    """Moves copies of partitions between the log directories of the broker that is asked (KIP-113)."""

    dirs: list[AlterReplicaLogDir]


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: Int32
    error_code: Int16 = wire(default=0)


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: String
    partitions: list[AlterReplicaLogDirPartitionResult]


@message(key=34, versions="1-2", flexible="2+")
class AlterReplicaLogDirsResponse:
    """One result per partition; the copying goes on in the background."""

    throttle_time_ms: Int32 = wire(default=0)
    results: list[AlterReplicaLogDirTopicResult]
