from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, String, UInt16, UuidField, message, struct, wire


@struct
class ReplicaInfo:
    candidate_id: Int32
    candidate_directory_id: UuidField


@struct
class PartitionData:
    partition_index: Int32
    leader_id: Int32
    leader_epoch: Int32
    preferred_successors: list[Int32] = wire("0", default=[])
    preferred_candidates: list[ReplicaInfo] = wire("1+", default=[])


@struct
class TopicData:
    topic_name: String
    partitions: list[PartitionData]


@struct
class LeaderEndpoint:
    name: String
    host: String
    port: UInt16


@message(key=54, versions="0-1", flexible="1+", listeners=("controller",))
class EndQuorumEpochRequest:
    """A leader of the metadata quorum that stops hands over (KIP-595).

    It names its successors in order of preference. v1: KIP-853, with their directories.
    """

    cluster_id: String | None = wire(default=None)
    topics: list[TopicData]
    leader_endpoints: list[LeaderEndpoint] = wire("1+", default=[])


@struct
class EndQuorumEpochResponsePartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    leader_id: Int32
    leader_epoch: Int32


@struct
class EndQuorumEpochResponseTopicData:
    topic_name: String
    partitions: list[EndQuorumEpochResponsePartitionData]


@struct
class NodeEndpoint:
    node_id: Int32
    host: String
    port: UInt16


@message(key=54, versions="0-1", flexible="1+")
class EndQuorumEpochResponse:
    """The voter's view of the epoch. v1: with the leader's addresses."""

    error_code: Int16 = wire(default=0)
    topics: list[EndQuorumEpochResponseTopicData]
    node_endpoints: list[NodeEndpoint] = wire("1+", default=[], tag=0)
