from __future__ import annotations

from millstream.protocol.declare import Int32, Int64, message, wire


@message(record_type=15, versions="0", flexible="0+")
class ProducerIdsRecord:
    """A block of producer ids was given to a broker; the next block starts where it ends (KIP-730)."""

    broker_id: Int32
    broker_epoch: Int64 = wire(default=-1)
    next_producer_id: Int64
