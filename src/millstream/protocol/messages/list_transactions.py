from __future__ import annotations

from millstream.protocol.declare import Int16, Int32, Int64, String, message, struct, wire


@message(key=66, versions="0-2", flexible="0+", listeners=("broker",))
class ListTransactionsRequest:
    """Lists the transactions of a coordinator by state and producer (KIP-664).

    v1: KIP-994, by age. v2: KIP-1152, by a pattern of ids.
    """

    state_filters: list[String]
    producer_id_filters: list[Int64]
    duration_filter: Int64 = wire("1+", default=-1)
    transactional_id_pattern: String | None = wire("2+", default=None)


@struct
class TransactionState:
    transactional_id: String
    producer_id: Int64
    transaction_state: String


@message(key=66, versions="0-2", flexible="0+")
class ListTransactionsResponse:
    """Transactional ids and their states."""

    throttle_time_ms: Int32 = wire(default=0)
    error_code: Int16 = wire(default=0)
    unknown_state_filters: list[String]
    transaction_states: list[TransactionState]
