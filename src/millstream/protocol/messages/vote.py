from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, UInt16, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class PartitionData:
    partition_index: Int32
    replica_epoch: Int32
    replica_id: Int32
    replica_directory_id: UuidField = wire("1+", default=ZERO_UUID)
    voter_directory_id: UuidField = wire("1+", default=ZERO_UUID)
    last_offset_epoch: Int32
    last_offset: Int64
    pre_vote: Bool = wire("2+", default=False)


@struct
class TopicData:
    topic_name: String
    partitions: list[PartitionData]


@message(key=52, versions="0-2", flexible="0+", listeners=("controller",))
class VoteRequest:
    """A candidate asks for a vote (KIP-595). v1: KIP-853, directories. v2: KIP-996, pre-votes change no epoch."""

    cluster_id: String | None = wire(default=None)
    voter_id: Int32 = wire("1+", default=-1)
    topics: list[TopicData]


@struct
class VoteResponsePartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    leader_id: Int32
    leader_epoch: Int32
    vote_granted: Bool


@struct
class VoteResponseTopicData:
    topic_name: String
    partitions: list[VoteResponsePartitionData]


@struct
class NodeEndpoint:
    node_id: Int32
    host: String
    port: UInt16


@message(key=52, versions="0-2", flexible="0+")
class VoteResponse:
    """The vote, and the leader that the voter knows of."""

    error_code: Int16 = wire(default=0)
    topics: list[VoteResponseTopicData]
    node_endpoints: list[NodeEndpoint] = wire("1+", default=[], tag=0)
