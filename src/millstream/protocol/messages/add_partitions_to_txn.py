from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, message, struct, wire


@struct
class AddPartitionsToTxnTopic:
    name: String
    partitions: list[Int32]


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    verify_only: Bool = wire(default=False)
    topics: list[AddPartitionsToTxnTopic]


@message(key=24, versions="0-5", flexible="3+", listeners=("broker",))
class AddPartitionsToTxnRequest:
    """A producer adds partitions to its transaction before it writes to them.

    v0-3 come from clients, one transaction each. v4: KIP-890, brokers verify and add for many transactions at once.
    """

    transactions: list[AddPartitionsToTxnTransaction] = wire("4+", default=[])
    v3_and_below_transactional_id: String = wire("0-3", default="")
    v3_and_below_producer_id: Int64 = wire("0-3", default=0)
    v3_and_below_producer_epoch: Int16 = wire("0-3", default=0)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = wire("0-3", default=[])


@struct
class AddPartitionsToTxnTopicResult:
    name: String
    results_by_partition: list[AddPartitionsToTxnPartitionResult]


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: Int32
    partition_error_code: Int16


@struct
class AddPartitionsToTxnResult:
    transactional_id: String
    topic_results: list[AddPartitionsToTxnTopicResult]


@message(key=24, versions="0-5", flexible="3+")
class AddPartitionsToTxnResponse:
    """One result per partition, and from v4 on per transaction. v5: TRANSACTION_ABORTABLE."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire("4+", default=0)
    results_by_transaction: list[AddPartitionsToTxnResult] = wire("4+", default=[])
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = wire("0-3", default=[])
