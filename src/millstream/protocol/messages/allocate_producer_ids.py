from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, message, wire


@message(key=67, versions="0", flexible="0+", listeners=("controller",))
class AllocateProducerIdsRequest:
    """A broker asks the controller for a block of producer ids that nobody else hands out (KIP-730)."""

    broker_id: Int32
    broker_epoch: Int64 = wire(default=-1)


@message(key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    """The first id of the block and its length."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    producer_id_start: Int64
    producer_id_len: Int32
