from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, UInt16, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class PartitionData:
    partition_index: Int32


@struct
class TopicData:
    topic_name: String
    partitions: list[PartitionData]


@message(key=55, versions="0-2", flexible="0+", listeners=("broker", "controller"))
class DescribeQuorumRequest:
    """Asks for the state of the metadata quorum (KIP-595)."""

    topics: list[TopicData]


@struct
class ReplicaState:
    replica_id: Int32
    replica_directory_id: UuidField = wire("2+", default=ZERO_UUID)
    log_end_offset: Int64
    last_fetch_timestamp: Int64 = wire("1+", default=-1)
    last_caught_up_timestamp: Int64 = wire("1+", default=-1)


@struct
class DescribeQuorumResponsePartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire("2+", default="")
    leader_id: Int32
    leader_epoch: Int32
    high_watermark: Int64
    current_voters: list[ReplicaState]
    observers: list[ReplicaState]


@struct
class DescribeQuorumResponseTopicData:
    topic_name: String
    partitions: list[DescribeQuorumResponsePartitionData]


@struct
class Listener:
    name: String
    host: String
    port: UInt16


@struct
class Node:
    node_id: Int32
    listeners: list[Listener]


@message(key=55, versions="0-2", flexible="0+")
class DescribeQuorumResponse:
    """Leader, voters and observers with their offsets.

    v1: KIP-836, when each has last fetched and been caught up. v2: KIP-853, directories and addresses.
    """

    error_code: Int16 = wire(default=0)
    error_message: String | None = wire("2+", default="")
    topics: list[DescribeQuorumResponseTopicData]
    nodes: list[Node] = wire("2+", default=[])
