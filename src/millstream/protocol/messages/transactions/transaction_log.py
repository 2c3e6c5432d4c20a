from __future__ import annotations

from millstream.protocol.declare import Int8, Int16, Int32, Int64, String, message, struct, wire


@message(coordinator_type=0, versions="0")
class TransactionLogKey:
    """A transactional id."""

    transactional_id: String


@struct
class PartitionsSchema:
    topic: String
    partition_ids: list[Int32]


@message(coordinator_type=0, versions="0-1", flexible="1+")
class TransactionLogValue:
    """The state of its transaction. v1: KIP-890, earlier and next producer ids as tagged fields."""

    producer_id: Int64
    previous_producer_id: Int64 = wire("1+", default=-1, tag=0)
    next_producer_id: Int64 = wire("1+", default=-1, tag=1)
    producer_epoch: Int16
    next_producer_epoch: Int16 = wire("1+", default=-1, tag=3)
    transaction_timeout_ms: Int32
    transaction_status: Int8
    transaction_partitions: list[PartitionsSchema] | None
    transaction_last_update_timestamp_ms: Int64
    transaction_start_timestamp_ms: Int64
    client_transaction_version: Int16 = wire("1+", default=0, tag=2)
