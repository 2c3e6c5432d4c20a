from __future__ import annotations

from millstream.protocol.declare import (
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    Records,
    String,
    UuidField,
    message,
    struct,
    wire,
)


@struct
class AcknowledgementBatch:
    first_offset: Int64
    last_offset: Int64
    acknowledge_types: list[Int8]


@struct
class FetchPartition:
    partition_index: Int32
    acknowledgement_batches: list[AcknowledgementBatch]


@struct
class FetchTopic:
    topic_id: UuidField
    partitions: list[FetchPartition]


@struct
class ForgottenTopic:
    topic_id: UuidField
    partitions: list[Int32]


@message(key=78, versions="1-2", flexible="0+", listeners=("broker",))
class ShareFetchRequest:
    """A share consumer fetches records and acknowledges earlier ones (KIP-932).

    v2: KIP-1206, how strictly the number of records is kept; KIP-1222, renewals.
    """

    group_id: String | None = wire(default=None)
    member_id: String | None
    share_session_epoch: Int32
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32 = wire(default=2147483647)
    max_records: Int32
    batch_size: Int32
    share_acquire_mode: Int8 = wire("2+", default=0)
    is_renew_ack: Bool = wire("2+", default=False)
    topics: list[FetchTopic]
    forgotten_topics_data: list[ForgottenTopic]


@struct
class LeaderIdAndEpoch:
    leader_id: Int32
    leader_epoch: Int32


@struct
class AcquiredRecords:
    first_offset: Int64
    last_offset: Int64
    delivery_count: Int16


@struct
class PartitionData:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    acknowledge_error_code: Int16
    acknowledge_error_message: String | None = wire(default=None)
    current_leader: LeaderIdAndEpoch
    records: Records
    acquired_records: list[AcquiredRecords]


@struct
class ShareFetchableTopicResponse:
    topic_id: UuidField
    partitions: list[PartitionData]


@struct
class NodeEndpoint:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = wire(default=None)


@message(key=78, versions="1-2", flexible="0+")
class ShareFetchResponse:
    """Batches, and which of their records this member has acquired for how long."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    acquisition_lock_timeout_ms: Int32
    responses: list[ShareFetchableTopicResponse]
    node_endpoints: list[NodeEndpoint]
