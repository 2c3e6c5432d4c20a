"""The transaction coordinator's replicated machine: the transactional ids of one partition of `__transaction_state`.

`decide_*` functions live with what they decide on and take the machine as their first argument:

    transactions/producers.py     InitProducerId
    transactions/participants.py  AddPartitionsToTxn, AddOffsetsToTxn, verification of what is produced
    transactions/ending.py        EndTxn, and the completion once all markers are written
    transactions/aging.py         transactions that took too long, ids that nobody uses
    transactions/describing.py    DescribeTransactions, ListTransactions

Markers are an effect (`WriteMarkers`): the coordinator around the shard writes them and then has `decide_complete`
decide. A machine that finds prepared transactions when its log was replayed asks for their markers again: whatever was
prepared is carried out, however often the broker dies in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.protocol.messages.transactions.transaction_log import TransactionLogKey
from millstream.replicated import Cancel, Decision, Schedule
from millstream.settings import (
    TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS,
    TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS,
)
from millstream.transactions import aging, ending
from millstream.transactions.transaction import State, Transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from millstream.settings.effective import Settings
    from millstream.transactions.transaction import Bump

RESUME_TIMER = ("resume",)


class TransactionMachine:
    """Transactional ids and their transactions. Driven by `runtime/shard.py`."""

    def __init__(
        self,
        index: int,
        settings: Callable[[], Settings],
        transaction_version: Callable[[], int],
        new_producer_id: Callable[[], int],
    ) -> None:
        """`new_producer_id` gives an id that was never used, or a BrokerError if none is at hand."""
        self.index = index
        self.new_producer_id = new_producer_id
        self._settings = settings
        self._transaction_version = transaction_version
        self.transactions: dict[str, Transaction] = {}
        # Those that are ongoing, so that a look for old ones does not pass over a million ids at rest.
        self.ongoing: dict[str, None] = {}
        # Soft, as in Kafka: after a restart a repeated request is fenced and the producer starts anew.
        self.bumps: dict[str, Bump] = {}
        # Ids that the expiry has not looked at yet in its present round.
        self.expiry_queue: list[str] = []

    @property
    def settings(self) -> Settings:
        """The broker's settings as they are now."""
        return self._settings()

    @property
    def transaction_version(self) -> int:
        """The finalized level of transaction.version."""
        return self._transaction_version()

    # --- what the shard drives

    def apply(self, key: Any, value: Any | None, *, transaction: tuple[int, int] | None, offset: int) -> None:
        """The only writer of what is stored."""
        if type(key) is not TransactionLogKey:
            return
        transactional_id = key.transactional_id
        if value is None:
            self.transactions.pop(transactional_id, None)
            self.ongoing.pop(transactional_id, None)
            self.bumps.pop(transactional_id, None)
            return
        stored = self.transactions[transactional_id] = Transaction.stored(transactional_id, value)
        if stored.state is State.ONGOING:
            self.ongoing[transactional_id] = None
        else:
            self.ongoing.pop(transactional_id, None)

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool) -> None:
        """The coordinator's own log is not written to in transactions."""

    def loaded(self, now_ms: int) -> tuple[Schedule | Cancel, ...]:
        settings = self.settings
        return (
            Schedule(RESUME_TIMER, 0),
            Schedule(aging.TIMEOUT_TIMER, settings[TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS]),
            Schedule(aging.EXPIRY_TIMER, settings[TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS]),
        )

    def on_timer(self, key: Hashable, now_ms: int) -> Decision[Any]:
        match key:
            case ("resume",):
                return ending.decide_resume(self)
            case ("timeouts",):
                return aging.decide_timeouts(self, now_ms)
            case ("expiry",):
                return aging.decide_expiry(self, now_ms)
            case ("complete", str(transactional_id), int(producer_id), int(epoch)):
                return ending.decide_complete(self, transactional_id, producer_id, epoch, now_ms)
            case _:
                raise AssertionError(f"{key!r} is no transaction coordinator's timer")
