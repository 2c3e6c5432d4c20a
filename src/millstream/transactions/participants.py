"""Who takes part in a transaction: AddPartitionsToTxn, and the question whether a partition does (KIP-890).

A partition must be part of its producer's transaction before the transaction's first record is in its log, or nobody
would ever end it there. With transaction.version 2 the partition's leader adds it when it sees that record; before, the
producer adds it, and the leader only asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from millstream.protocol.errors import (
    ConcurrentTransactions,
    ErrorCode,
    InvalidProducerIdMapping,
    InvalidRequest,
    ProducerFenced,
)
from millstream.replicated import Decision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.transactions.machine import TransactionMachine
    from millstream.transactions.transaction import Transaction

Answer = TypeVar("Answer")


def decide_add_partitions(
    machine: TransactionMachine,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: Sequence[tuple[str, int]],
    *,
    client_version: int,
    answer: Answer,
    now_ms: int,
) -> Decision[Answer]:
    """Make the partitions part of the producer's transaction, which begins with the first; then give the answer."""
    current = _current(machine, transactional_id)
    # First of all: the producer may already use the id that it gets with the end that is under way.
    if current.is_prepared:
        raise ConcurrentTransactions
    _check_producer(current, producer_id, epoch)
    if current.is_ongoing and all(partition in current.partitions for partition in partitions):
        return Decision(response=answer)
    grown = current.with_partitions(partitions, client_version, now_ms)
    return Decision(records=(grown.record(machine.transaction_version),), response=answer)


def decide_verify(
    machine: TransactionMachine,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: Sequence[tuple[str, int]],
) -> Decision[dict[tuple[str, int], ErrorCode]]:
    """By partition: NONE, or TRANSACTION_ABORTABLE where it is not part of the transaction."""
    current = _current(machine, transactional_id)
    _check_producer(current, producer_id, epoch)
    if current.is_prepared:
        raise ConcurrentTransactions
    return Decision(
        response={
            partition: ErrorCode.NONE if partition in current.partitions else ErrorCode.TRANSACTION_ABORTABLE
            for partition in partitions
        }
    )


def _current(machine: TransactionMachine, transactional_id: str) -> Transaction:
    if not transactional_id:
        raise InvalidRequest
    current = machine.transactions.get(transactional_id)
    if current is None:
        raise InvalidProducerIdMapping
    return current


def _check_producer(current: Transaction, producer_id: int, epoch: int) -> None:
    if current.producer_id != producer_id:
        raise InvalidProducerIdMapping
    if current.epoch != epoch:
        raise ProducerFenced
