from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, Int64, Records, String, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class ReplicaState:
    replica_id: Int32 = wire(default=-1)
    replica_epoch: Int64 = wire(default=-1)


@struct
class FetchPartition:
    partition: Int32
    current_leader_epoch: Int32 = wire("9+", default=-1)
    fetch_offset: Int64
    # The leader compares it with its own log and answers with diverging_epoch.
    last_fetched_epoch: Int32 = wire("12+", default=-1)
    # Only followers send it: the leader learns where their logs start.
    log_start_offset: Int64 = wire("5+", default=-1)
    partition_max_bytes: Int32
    replica_directory_id: UuidField = wire("17+", default=ZERO_UUID, tag=0)
    high_watermark: Int64 = wire("18+", default=9223372036854775807, tag=1)


@struct
class FetchTopic:
    topic: String = wire("0-12", default="")
    topic_id: UuidField = wire("13+", default=ZERO_UUID)
    partitions: list[FetchPartition]


@struct
class ForgottenTopic:
    topic: String = wire("7-12", default="")
    topic_id: UuidField = wire("13+", default=ZERO_UUID)
    partitions: list[Int32]


@message(key=1, versions="4-18", flexible="12+", listeners=("broker", "controller"))
class FetchRequest:
    """Reads batches from partitions, for consumers and for followers; waits until there is enough.

    v7: KIP-227, sessions. v9: KIP-320, leader epochs. v12: epoch validation. v13: KIP-516, topic ids. v15: KIP-903,
    replica_state replaces replica_id. v17: KIP-853, the follower's directory. v18: KIP-1166, its high watermark.
    """

    cluster_id: String | None = wire("12+", default=None, tag=0)
    # -1 is a consumer, -2 a debugging one; others are followers.
    replica_id: Int32 = wire("0-14", default=-1)
    replica_state: ReplicaState = wire("15+", default=ReplicaState(), tag=1)
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = wire(default=2147483647)
    isolation_level: Int8 = wire(default=0)
    session_id: Int32 = wire("7+", default=0)
    # -1 asks for no session, 0 for a new one.
    session_epoch: Int32 = wire("7+", default=-1)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic] = wire("7+", default=[])
    rack_id: String = wire("11+", default="")


@struct
class EpochEndOffset:
    epoch: Int32 = wire(default=-1)
    end_offset: Int64 = wire(default=-1)


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = wire(default=-1)
    leader_epoch: Int32 = wire(default=-1)


@struct
class SnapshotId:
    end_offset: Int64 = wire(default=-1)
    epoch: Int32 = wire(default=-1)


@struct
class AbortedTransaction:
    producer_id: Int64
    first_offset: Int64


@struct
class PartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    high_watermark: Int64
    last_stable_offset: Int64 = wire(default=-1)
    log_start_offset: Int64 = wire("5+", default=-1)
    diverging_epoch: EpochEndOffset = wire("12+", default=EpochEndOffset(), tag=0)
    current_leader: LeaderIdAndEpoch = wire("12+", default=LeaderIdAndEpoch(), tag=1)
    snapshot_id: SnapshotId = wire("12+", default=SnapshotId(), tag=2)
    aborted_transactions: list[AbortedTransaction] | None
    preferred_read_replica: Int32 = wire("11+", default=-1)
    records: Records | None


@struct
class FetchableTopicResponse:
    topic: String = wire("0-12", default="")
    topic_id: UuidField = wire("13+", default=ZERO_UUID)
    partitions: list[PartitionData]


@struct
class NodeEndpoint:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = wire(default=None)


@message(key=1, versions="4-18", flexible="12+")
class FetchResponse:
    """Batches of each partition, as they lie in the log.

    v7: KIP-227, in a session only what changed. v12: divergence of a follower is told here. v13: topic ids. v16:
    KIP-951, where the new leader is.
    """

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire("7+", default=0)
    session_id: Int32 = wire("7+", default=0)
    responses: list[FetchableTopicResponse]
    node_endpoints: list[NodeEndpoint] = wire("16+", default=[], tag=0)
