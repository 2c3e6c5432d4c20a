from __future__ import annotations

from millstream.protocol.declare import Bool, Int16, Int32, Int64, String, message, wire


@message(key=22, versions="0-6", flexible="2+", unstable="6", listeners=("broker",))
class InitProducerIdRequest:
    """A producer asks for its id and epoch, to be idempotent or transactional (KIP-98).

    v3: KIP-360, it may name the id that it has. v6: KIP-939, two-phase commit; not advertised, it is unstable.
    """

    transactional_id: String | None
    transaction_timeout_ms: Int32
    producer_id: Int64 = wire("3+", default=-1)
    producer_epoch: Int16 = wire("3+", default=-1)
    # Kafka's Enable2Pc, in the spelling of Kafka's own schema.
    enable2_pc: Bool = wire("6+", default=False)
    keep_prepared_txn: Bool = wire("6+", default=False)


@message(key=22, versions="0-6", flexible="2+")
class InitProducerIdResponse:
    """The producer's id and epoch. v6: KIP-939, a prepared transaction that is still open."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    producer_id: Int64 = wire(default=-1)
    producer_epoch: Int16
    ongoing_txn_producer_id: Int64 = wire("6+", default=-1)
    ongoing_txn_producer_epoch: Int16 = wire("6+", default=-1)
