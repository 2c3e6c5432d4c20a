from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, message, struct, wire


@message(key=65, versions="0", flexible="0+", listeners=("broker",))
class DescribeTransactionsRequest:
    """Asks the coordinator for the state of transactional ids (KIP-664)."""

    transactional_ids: list[String]


@struct
class TopicData:
    topic: String
    partitions: list[Int32]


@struct
class TransactionState:
    error_code: Int16 = wire(default=0)
    transactional_id: String
    transaction_state: String
    transaction_timeout_ms: Int32
    transaction_start_time_ms: Int64
    producer_id: Int64
    producer_epoch: Int16
    topics: list[TopicData]


@message(key=65, versions="0", flexible="0+")
class DescribeTransactionsResponse:
    """State, producer and partitions of each transaction."""

    throttle_time_ms: Int32 = wire(default=0)
    transaction_states: list[TransactionState]
