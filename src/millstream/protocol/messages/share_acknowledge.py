from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, Int64, String, UuidField, message, struct, wire


@struct
class AcknowledgementBatch:
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: list[Int8]


@struct
class AcknowledgePartition:
    partition_index: Int32
    acknowledgement_batches: list[AcknowledgementBatch]


@struct
class AcknowledgeTopic:
    topic_id: UuidField
    partitions: list[AcknowledgePartition]


@message(key=79, versions="1-2", flexible="0+", listeners=("broker",))
class ShareAcknowledgeRequest:
    """A share consumer acknowledges records without fetching more (KIP-932). v2: KIP-1222, renews its locks."""

    group_id: String | None = wire(default=None)
    member_id: String | None
    share_session_epoch: Int32
    is_renew_ack: Bool = wire("2+", default=False)
    topics: list[AcknowledgeTopic]


@struct
class LeaderIdAndEpoch:
    leader_id: Int32
    leader_epoch: Int32


@struct
class PartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    current_leader: LeaderIdAndEpoch


@struct
class ShareAcknowledgeTopicResponse:
    topic_id: UuidField
    partitions: list[PartitionData]


@struct
class NodeEndpoint:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = wire(default=None)


@message(key=79, versions="1-2", flexible="0+")
class ShareAcknowledgeResponse:
    """One result per partition."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    acquisition_lock_timeout_ms: Int32 = wire("2+", default=0)
    responses: list[ShareAcknowledgeTopicResponse]
    node_endpoints: list[NodeEndpoint]
