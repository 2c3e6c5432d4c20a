from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, Records, String, UInt16, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class SnapshotId:
    end_offset: Int64
    epoch: Int32


@struct
class PartitionSnapshot:
    partition: Int32
    current_leader_epoch: Int32
    snapshot_id: SnapshotId
    position: Int64
    replica_directory_id: UuidField = wire("1+", default=ZERO_UUID, tag=0)


@struct
class TopicSnapshot:
    name: String
    partitions: list[PartitionSnapshot]


@message(key=59, versions="0-1", flexible="0+", listeners=("controller",))
class FetchSnapshotRequest:
    """A voter or observer that has fallen behind the log's start reads a snapshot piece by piece (KIP-630). v1:
    KIP-853.
    """

    cluster_id: String | None = wire(default=None, tag=0)
    replica_id: Int32 = wire(default=-1)
    max_bytes: Int32 = wire(default=2147483647)
    topics: list[TopicSnapshot]


@struct
class FetchSnapshotResponseSnapshotId:
    end_offset: Int64
    epoch: Int32


@struct
class LeaderIdAndEpoch:
    leader_id: Int32
    leader_epoch: Int32


@struct
class FetchSnapshotResponsePartitionSnapshot:
    index: Int32
    error_code: Int16 = wire(default=0)
    snapshot_id: FetchSnapshotResponseSnapshotId
    current_leader: LeaderIdAndEpoch = wire(default=LeaderIdAndEpoch(leader_id=0, leader_epoch=0), tag=0)
    size: Int64
    position: Int64
    unaligned_records: Records


@struct
class FetchSnapshotResponseTopicSnapshot:
    name: String
    partitions: list[FetchSnapshotResponsePartitionSnapshot]


@struct
class NodeEndpoint:
    node_id: Int32
    host: String
    port: UInt16


@message(key=59, versions="0-1", flexible="0+")
class FetchSnapshotResponse:
    """A piece of the snapshot. v1: KIP-853, the leader's addresses."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    topics: list[FetchSnapshotResponseTopicSnapshot]
    node_endpoints: list[NodeEndpoint] = wire("1+", default=[], tag=0)
