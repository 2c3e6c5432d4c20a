from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, message, wire


@message(key=25, versions="0-4", flexible="3+", listeners=("broker",))
class AddOffsetsToTxnRequest:
    """A producer adds the offsets partition of a group to its transaction.

    KIP-890: not needed any more where transaction.version is 2, TxnOffsetCommit does it.
    """

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    group_id: String


@message(key=25, versions="0-4", flexible="3+")
class AddOffsetsToTxnResponse:
    """Says whether the offsets partition is part of the transaction. v2: PRODUCER_FENCED, v4: TRANSACTION_ABORTABLE."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
