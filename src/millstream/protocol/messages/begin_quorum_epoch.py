from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UInt16, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class PartitionData:
    partition_index: Int32
    voter_directory_id: UuidField = wire("1+", default=ZERO_UUID)
    leader_id: Int32
    leader_epoch: Int32


@struct
class TopicData:
    topic_name: String
    partitions: list[PartitionData]


@struct
class LeaderEndpoint:
    name: String
    host: String
    port: UInt16


@message(key=53, versions="0-1", flexible="1+", listeners=("controller",))
class BeginQuorumEpochRequest:
    """A freshly elected leader of the metadata quorum makes itself known to the voters (KIP-595).

    v1: KIP-853, voters are known by id and directory, and the leader's addresses come along.
    """

    cluster_id: String | None = wire(default=None)
    voter_id: Int32 = wire("1+", default=-1)
    topics: list[TopicData]
    leader_endpoints: list[LeaderEndpoint] = wire("1+", default=[])


@struct
class BeginQuorumEpochResponsePartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    leader_id: Int32
    leader_epoch: Int32


@struct
class BeginQuorumEpochResponseTopicData:
    topic_name: String
    partitions: list[BeginQuorumEpochResponsePartitionData]


@struct
class NodeEndpoint:
    node_id: Int32
    host: String
    port: UInt16


@message(key=53, versions="0-1", flexible="1+")
class BeginQuorumEpochResponse:
    """The voter's view of the leader. v1: with the leader's addresses."""

    error_code: Int16 = wire(default=0)
    topics: list[BeginQuorumEpochResponseTopicData]
    node_endpoints: list[NodeEndpoint] = wire("1+", default=[], tag=0)
