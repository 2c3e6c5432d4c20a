"""InitProducerId with a transactional id: a producer takes the id over, and whoever had it is fenced.

The epoch goes up by one each time. A transaction that its last owner left open is aborted first, and the new one told
CONCURRENT_TRANSACTIONS until that is done. A producer that only wants to go on after an error names the id and epoch
that it has (KIP-360): it is served if nobody has taken the transactional id since, and gets the same answer again if it
asks again. When no epoch is left, the producer gets a new id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.protocol.errors import (
    ConcurrentTransactions,
    ErrorCode,
    InvalidRequest,
    InvalidTransactionTimeout,
    ProducerFenced,
)
from millstream.protocol.messages.init_producer_id import InitProducerIdResponse
from millstream.replicated import Decision
from millstream.settings import TRANSACTION_MAX_TIMEOUT_MS
from millstream.transactions.ending import fence
from millstream.transactions.transaction import EPOCH_MAX, NO_EPOCH, NO_PRODUCER_ID, Bump, Transaction

if TYPE_CHECKING:
    from millstream.transactions.machine import TransactionMachine


class Producer(NamedTuple):
    """A producer id with its epoch."""

    id: int
    epoch: int


def decide_init_producer_id(
    machine: TransactionMachine,
    transactional_id: str,
    timeout_ms: int,
    expected: Producer | None,
    now_ms: int,
) -> Decision[InitProducerIdResponse]:
    """`expected` is what the producer has, if it wants to go on with it."""
    if not transactional_id:
        raise InvalidRequest
    if not 0 < timeout_ms <= machine.settings[TRANSACTION_MAX_TIMEOUT_MS]:
        raise InvalidTransactionTimeout
    current = machine.transactions.get(transactional_id)
    if current is None:
        current = Transaction.begin(transactional_id, machine.new_producer_id(), timeout_ms)
    if current.is_prepared:
        raise ConcurrentTransactions
    bump = machine.bumps.get(transactional_id)
    if expected is not None and not _may_go_on(current, bump, expected):
        raise ProducerFenced
    if current.is_ongoing:
        prepared = fence(machine, current, now_ms)
        # The epoch that fences the old producer is not given to the new one, which comes again for the next.
        return Decision(
            records=prepared.records,
            effects=prepared.effects,
            response=InitProducerIdResponse(error_code=ErrorCode.CONCURRENT_TRANSACTIONS, producer_epoch=NO_EPOCH),
        )
    granted = _granted(machine, current, expected, timeout_ms, now_ms)
    if (granted.producer_id, granted.epoch) != (current.producer_id, current.epoch):
        # Only who named what they had may ask again; a new owner who lost the answer takes over once more.
        from_epoch = NO_EPOCH if expected is None else current.epoch
        machine.bumps[transactional_id] = Bump(granted.producer_id, granted.epoch, current.producer_id, from_epoch)
    return Decision(
        records=(granted.record(machine.transaction_version),),
        response=InitProducerIdResponse(producer_id=granted.producer_id, producer_epoch=granted.epoch),
    )


def _may_go_on(current: Transaction, bump: Bump | None, expected: Producer) -> bool:
    """Whether the producer may be the one whose id this is. Its epoch is looked at when the next one is given."""
    if current.epoch == NO_EPOCH or expected.id == current.producer_id:
        return True
    before = current.previous_producer_id
    if before == NO_PRODUCER_ID and bump is not None and bump.led_to(current):
        before = bump.from_producer_id
    # The answer with the new id may have been lost: the producer still knows its old one.
    return expected.id == before and expected.epoch >= EPOCH_MAX - 1


def _granted(
    machine: TransactionMachine, current: Transaction, expected: Producer | None, timeout_ms: int, now_ms: int
) -> Transaction:
    bump = machine.bumps.get(current.transactional_id)
    if expected is not None and current.epoch != NO_EPOCH and expected != (current.producer_id, current.epoch):
        if bump is None or not bump.led_to(current) or expected.epoch != bump.from_epoch:
            raise ProducerFenced
        # A repetition: nobody else has come in between, so the producer gets what it was given.
        return current.initialized(epoch=current.epoch, timeout_ms=timeout_ms, now_ms=now_ms)
    if current.is_exhausted:
        return current.initialized(producer_id=machine.new_producer_id(), epoch=0, timeout_ms=timeout_ms, now_ms=now_ms)
    return current.initialized(epoch=current.epoch + 1, timeout_ms=timeout_ms, now_ms=now_ms)
