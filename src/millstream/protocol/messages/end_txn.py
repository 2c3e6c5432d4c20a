from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, message, wire


@message(key=26, versions="0-5", flexible="3+", listeners=("broker",))
class EndTxnRequest:
    """A producer commits or aborts its transaction. v5: KIP-890, every end bumps the epoch."""

    transactional_id: String
    producer_id: Int64
    producer_epoch: Int16
    # True commits, false aborts.
    committed: Bool


@message(key=26, versions="0-5", flexible="3+")
class EndTxnResponse:
    """Says that the end is decided; the markers follow. v5: the producer id and epoch to go on with."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    producer_id: Int64 = wire("5+", default=-1)
    producer_epoch: Int16 = wire("5+", default=-1)
