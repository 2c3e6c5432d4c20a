"""What time does to transactions: those that take too long are aborted, ids that nobody uses are forgotten.

Both are looked for at intervals, as in Kafka (`transaction.abort.timed.out.transaction.cleanup.interval.ms`,
`transaction.remove.expired.transaction.cleanup.interval.ms`), a bounded number in one decision; the rest follows at
once, in the next turn of the loop, so that no request waits for long and no batch grows too large (KAFKA-17058).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.protocol.errors import BrokerError
from millstream.replicated import Decision, Schedule
from millstream.settings import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTIONAL_ID_EXPIRATION_MS,
)
from millstream.transactions.ending import fence
from millstream.transactions.transaction import tombstone

if TYPE_CHECKING:
    from millstream.transactions.ending import Prepared
    from millstream.transactions.machine import TransactionMachine

TIMEOUT_TIMER = ("timeouts",)
EXPIRY_TIMER = ("expiry",)
ABORTED_AT_ONCE_MAX = 64
LOOKED_AT_ONCE_MAX = 2_000


def decide_timeouts(machine: TransactionMachine, now_ms: int) -> Decision[Any]:
    """Abort what has been ongoing for longer than its producer's timeout; the producer is fenced."""
    later = Schedule(TIMEOUT_TIMER, machine.settings[TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS])
    ended: list[Prepared] = []
    for transactional_id in machine.ongoing:
        found = machine.transactions[transactional_id]
        # A clock that was set back makes nothing older: it only takes longer (KAFKA-5415).
        if now_ms - found.start_ms <= found.timeout_ms:
            continue
        if len(ended) == ABORTED_AT_ONCE_MAX:
            later = Schedule(TIMEOUT_TIMER, 0)
            break
        try:
            ended.append(fence(machine, found, now_ms))
        except BrokerError:
            continue  # its epochs are exhausted, and no producer id is at hand: the next round finds it again
    return Decision(
        records=tuple(record for prepared in ended for record in prepared.records),
        effects=tuple(effect for prepared in ended for effect in prepared.effects),
        timers=(later,),
        # What could not be written is not forgotten: the next round finds it again.
        undo=lambda _: Decision(timers=(Schedule(TIMEOUT_TIMER, later.delay_ms or 1_000),)),
    )


def decide_expiry(machine: TransactionMachine, now_ms: int) -> Decision[Any]:
    """Forget ids without a transaction under way that were not used for `transactional.id.expiration.ms`."""
    settings = machine.settings
    if not machine.expiry_queue:
        machine.expiry_queue = list(machine.transactions)
    queue = machine.expiry_queue
    looked_at, machine.expiry_queue = queue[-LOOKED_AT_ONCE_MAX:], queue[:-LOOKED_AT_ONCE_MAX]
    oldest_ms = now_ms - settings[TRANSACTIONAL_ID_EXPIRATION_MS]
    expired = []
    for transactional_id in looked_at:
        found = machine.transactions.get(transactional_id)
        if found is not None and found.is_at_rest and found.updated_ms <= oldest_ms:
            expired.append(transactional_id)
    pause_ms = 0 if machine.expiry_queue else settings[TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS]
    return Decision(
        records=tuple(tombstone(transactional_id) for transactional_id in expired),
        timers=(Schedule(EXPIRY_TIMER, pause_ms),),
        undo=lambda _: Decision(timers=(Schedule(EXPIRY_TIMER, pause_ms or 1_000),)),
    )
