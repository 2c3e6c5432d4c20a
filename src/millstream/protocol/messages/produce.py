from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, Records, String, UuidField, message, struct, wire
from millstream.protocol.uuid import ZERO_UUID


@struct
class PartitionProduceData:
    index: Int32
    records: Records | None


@struct
class TopicProduceData:
    name: String = wire("0-12", default="")
    topic_id: UuidField = wire("13+", default=ZERO_UUID)
    partition_data: list[PartitionProduceData]


@message(key=0, versions="3-13", flexible="9+", listeners=("broker",))
class ProduceRequest:
    """Appends batches to partitions.

    v3: transactional ids, record format 2. v7: KIP-110, zstd. v12: KIP-890, also adds partitions to the
    transaction. v13: KIP-516, topic ids. v0-2 must be advertised (KAFKA-18659) but are not served.
    """

    transactional_id: String | None = wire(default=None)
    acks: Int16
    timeout_ms: Int32
    topic_data: list[TopicProduceData]


@struct
class BatchIndexAndErrorMessage:
    batch_index: Int32
    batch_index_error_message: String | None = wire(default=None)


@struct
class LeaderIdAndEpoch:
    leader_id: Int32 = wire(default=-1)
    leader_epoch: Int32 = wire(default=-1)


@struct
class PartitionProduceResponse:
    index: Int32
    error_code: Int16 = wire(default=0)
    base_offset: Int64
    # -1 unless the topic's timestamps are LogAppendTime.
    log_append_time_ms: Int64 = wire(default=-1)
    log_start_offset: Int64 = wire("5+", default=-1)
    record_errors: list[BatchIndexAndErrorMessage] = wire("8+", default=[])
    error_message: String | None = wire("8+", default=None)
    current_leader: LeaderIdAndEpoch = wire("10+", default=LeaderIdAndEpoch(), tag=0)


@struct
class TopicProduceResponse:
    name: String = wire("0-12", default="")
    topic_id: UuidField = wire("13+", default=ZERO_UUID)
    partition_responses: list[PartitionProduceResponse]


@struct
class NodeEndpoint:
    node_id: Int32
    host: String
    port: Int32
    rack: String | None = wire(default=None)


@message(key=0, versions="3-13", flexible="9+")
class ProduceResponse:
    """The base offset that each partition's batch got; not sent for acks=0.

    v8: KIP-467, which records were at fault. v10: KIP-951, where the new leader is.
    """

    responses: list[TopicProduceResponse]
    throttle_time_ms: Int32 = wire(default=0)
    node_endpoints: list[NodeEndpoint] = wire("10+", default=[], tag=0)
