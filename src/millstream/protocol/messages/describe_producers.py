from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, message, struct, wire


@struct
class TopicRequest:
    name: String
    partition_indexes: list[Int32]


@message(key=61, versions="0", flexible="0+", listeners=("broker",))
class DescribeProducersRequest:
    """Asks for the producers that a partition's leader remembers (KIP-664)."""

    topics: list[TopicRequest]


@struct
class ProducerState:
    producer_id: Int64
    producer_epoch: Int32
    last_sequence: Int32 = wire(default=-1)
    last_timestamp: Int64 = wire(default=-1)
    coordinator_epoch: Int32
    current_txn_start_offset: Int64 = wire(default=-1)


@struct
class PartitionResponse:
    partition_index: Int32
    error_code: Int16 = wire(default=0)
    error_message: String | None = wire(default=None)
    active_producers: list[ProducerState]


@struct
class TopicResponse:
    name: String
    partitions: list[PartitionResponse]


@message(key=61, versions="0", flexible="0+")
class DescribeProducersResponse:
    """Producer ids with epochs, sequences and open transactions: what a hanging transaction is found by."""

    throttle_time_ms: Int32 = wire(default=0)
    topics: list[TopicResponse]
