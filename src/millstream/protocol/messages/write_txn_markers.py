from __future__ import annotations

from millstream.protocol.declare import Bool, Int8, Int16, Int32, Int64, String, message, struct, wire


@struct
class WritableTxnMarkerTopic:
    name: String
    partition_indexes: list[Int32]


@struct
class WritableTxnMarker:
    producer_id: Int64
    producer_epoch: Int16
    # True commits, false aborts.
    transaction_result: Bool
    topics: list[WritableTxnMarkerTopic]
    coordinator_epoch: Int32
    transaction_version: Int8 = wire("2+", default=0)


@message(key=27, versions="1-2", flexible="1+", listeners=("broker",))
class WriteTxnMarkersRequest:
    """A transaction coordinator has the leaders write commit or abort markers. v2: KIP-1228, their version."""

    markers: list[WritableTxnMarker]


@struct
class WritableTxnMarkerPartitionResult:
    partition_index: Int32
    error_code: Int16 = wire(default=0)


@struct
class WritableTxnMarkerTopicResult:
    name: String
    partitions: list[WritableTxnMarkerPartitionResult]


@struct
class WritableTxnMarkerResult:
    producer_id: Int64
    topics: list[WritableTxnMarkerTopicResult]


@message(key=27, versions="1-2", flexible="1+")
class WriteTxnMarkersResponse:
    """One result per producer and partition."""

    markers: list[WritableTxnMarkerResult]
