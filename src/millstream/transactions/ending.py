"""EndTxn: the end of a transaction is decided, markers are written, then it is complete.

With transaction.version 2 every end bumps the epoch, and the answer carries what the producer goes on with. So the same
epoch again means the next transaction, and the epoch before it a repetition of this end:

                      abort                      commit
                      repeated      current      repeated      current
    Empty             fenced        bump         fenced        invalid
    CompleteAbort     as before     bump         invalid       invalid
    CompleteCommit    invalid       bump         as before     invalid

Below that an end keeps the epoch, a repetition cannot be told from it and is answered alike, and what is not ongoing
cannot be ended. A transaction whose producer is fenced (by a new one, or because it took too long) is aborted with the
next epoch at every version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.protocol.errors import (
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionState,
    ProducerFenced,
)
from millstream.protocol.messages.end_txn import EndTxnResponse
from millstream.replicated import Decision, Schedule
from millstream.transactions.transaction import (
    EPOCH_BUMP_SINCE,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Bump,
    State,
    Transaction,
)

if TYPE_CHECKING:
    from millstream.transactions.machine import TransactionMachine
    from millstream.transactions.transaction import Participants

# How long a coordinator that could not write the completion of a transaction waits before it tries again.
COMPLETION_RETRY_MS = 100


class WriteMarkers(NamedTuple):
    """An effect: end the producer's transaction in all these partitions, then have `decide_complete` decide."""

    transactional_id: str
    producer_id: int
    epoch: int
    committed: bool
    partitions: Participants
    transaction_version: int


class Prepared(NamedTuple):
    """A decided end, on its way into a decision."""

    transaction: Transaction
    records: tuple[Any, ...]
    effects: tuple[WriteMarkers, ...]


def decide_end(
    machine: TransactionMachine,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    *,
    committed: bool,
    client_version: int,
    now_ms: int,
) -> Decision[EndTxnResponse]:
    """`client_version` is the transaction.version that the request stands for."""
    if not transactional_id:
        raise InvalidRequest
    current = machine.transactions.get(transactional_id)
    if current is None:
        raise InvalidProducerIdMapping
    bumps = client_version >= EPOCH_BUMP_SINCE
    repeated = bumps and _is_repetition(current, producer_id, epoch)
    _check_producer(current, producer_id, epoch, bumps=bumps, repeated=repeated)
    if current.is_prepared:
        raise ConcurrentTransactions
    if not current.is_ongoing:
        ended_so = State.COMPLETE_COMMIT if committed else State.COMPLETE_ABORT
        if current.state is ended_so and (repeated or not bumps):
            return Decision(response=_response(current.producer_id, current.epoch, bumps=bumps))
        if repeated or committed or not bumps:
            raise InvalidTransactionState(f"it is {current.state.label}")
    prepared = _prepare(machine, current, now_ms, commit=committed, bumps=bumps, fences=False)
    after = prepared.transaction.completed(now_ms)
    return Decision(
        records=prepared.records,
        effects=prepared.effects,
        response=_response(after.producer_id, after.epoch, bumps=bumps),
    )


def _is_repetition(current: Transaction, producer_id: int, epoch: int) -> bool:
    """Whether the request names the producer as it was before the last end."""
    if current.producer_id == producer_id:
        return current.epoch == epoch + 1
    return current.previous_producer_id == producer_id and epoch == EPOCH_MAX - 1 and current.epoch == 0


def _check_producer(current: Transaction, producer_id: int, epoch: int, *, bumps: bool, repeated: bool) -> None:
    if repeated and current.state not in (State.EMPTY, State.ONGOING):
        return
    if current.producer_id != producer_id:
        raise InvalidProducerIdMapping
    # While markers are written, only a repetition of the end that caused them is on time (KIP-890).
    if current.epoch != epoch or (bumps and current.is_prepared):
        raise ProducerFenced


def fence(machine: TransactionMachine, current: Transaction, now_ms: int) -> Prepared:
    """Abort an ongoing transaction with the next epoch, which its producer does not have."""
    bumps = machine.transaction_version >= EPOCH_BUMP_SINCE
    return _prepare(machine, current, now_ms, commit=False, bumps=bumps, fences=True)


def _prepare(
    machine: TransactionMachine,
    current: Transaction,
    now_ms: int,
    *,
    commit: bool,
    bumps: bool,
    fences: bool,
) -> Prepared:
    epoch = min(current.epoch + 1, EPOCH_MAX) if bumps or fences else current.epoch
    prepared = current.prepared(
        commit=commit,
        epoch=epoch,
        next_producer_id=machine.new_producer_id() if bumps and current.is_exhausted else NO_PRODUCER_ID,
        client_version=EPOCH_BUMP_SINCE if bumps else 0,
        now_ms=now_ms,
    )
    if bumps:
        after = prepared.completed(now_ms)
        machine.bumps[current.transactional_id] = Bump(
            after.producer_id, after.epoch, current.producer_id, current.epoch
        )
    return Prepared(prepared, (prepared.record(machine.transaction_version),), (_markers_of(prepared),))


def _markers_of(prepared: Transaction) -> WriteMarkers:
    return WriteMarkers(
        prepared.transactional_id,
        prepared.producer_id,
        prepared.epoch,
        prepared.state is State.PREPARE_COMMIT,
        prepared.partitions,
        prepared.client_version,
    )


def _response(producer_id: int, epoch: int, *, bumps: bool) -> EndTxnResponse:
    if not bumps:
        return EndTxnResponse(producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH)
    return EndTxnResponse(producer_id=producer_id, producer_epoch=epoch)


def decide_complete(
    machine: TransactionMachine, transactional_id: str, producer_id: int, epoch: int, now_ms: int
) -> Decision[Any]:
    """All markers of the transaction that this producer id and epoch ended are written."""
    current = machine.transactions.get(transactional_id)
    if current is None or not current.is_prepared or (current.producer_id, current.epoch) != (producer_id, epoch):
        return Decision()
    again = Schedule(("complete", transactional_id, producer_id, epoch), COMPLETION_RETRY_MS)
    return Decision(
        records=(current.completed(now_ms).record(machine.transaction_version),),
        undo=lambda _: Decision(timers=(again,)),
    )


def decide_resume(machine: TransactionMachine) -> Decision[Any]:
    """After a replay: whatever was prepared and not completed gets its markers, maybe once more."""
    return Decision(effects=tuple(_markers_of(found) for found in machine.transactions.values() if found.is_prepared))
