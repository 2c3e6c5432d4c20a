"""One transactional id: its producer, and how far its present or last transaction has come.

    Empty ──add──> Ongoing ──end──> PrepareCommit ──markers──> CompleteCommit ──add──> Ongoing …
                       └───────────> PrepareAbort  ──markers──> CompleteAbort  ──add──> Ongoing …

A `Transaction` never changes; each step makes a new one, which is what is written to `__transaction_state` (as Kafka's
TransactionLogValue) and, when read back, is the same again. Kafka keeps two states that are never stored, Dead (being
forgotten) and PrepareEpochFence (about to be aborted by force): here a decision goes through both in one step.

With transaction.version 2 (KIP-890) every end bumps the epoch, so that nothing which was sent for one transaction can
touch the next. The highest epoch is never given to a producer: at 32766 the end also gives it a new id, which is
`next_producer_id` until the markers, which still carry the old one, are written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Final, NamedTuple

from millstream.protocol.messages.transactions.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from millstream.replicated import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    # A partition that takes part: its topic's name, its index. In the order in which they were added.
    Participants = Mapping[tuple[str, int], None]

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 32767
# The transaction.version with which every end bumps the epoch.
EPOCH_BUMP_SINCE: Final = 2
# The transaction.version from which on records are written in version 1, which has room for ids before and after.
_TAGGED_RECORDS_SINCE: Final = 1


class State(IntEnum):
    """Kafka's numbers, as they are stored."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        """As Kafka spells it: PrepareCommit."""
        return "".join(word.capitalize() for word in self.name.split("_"))


STATES_BY_LABEL: Final = {state.label: state for state in State}
_PREPARED: Final = (State.PREPARE_COMMIT, State.PREPARE_ABORT)
_NO_PARTITIONS: Final[Mapping[tuple[str, int], None]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """What is stored under a transactional id."""

    transactional_id: str
    producer_id: int
    # The producer id before the last step: the same, unless the step gave a new one.
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH
    timeout_ms: int
    state: State = State.EMPTY
    partitions: Participants
    start_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    # The transaction.version that the producer's requests showed: 2 where it lets the broker bump the epoch.
    client_version: int = 0

    @classmethod
    def begin(cls, transactional_id: str, producer_id: int, timeout_ms: int) -> Transaction:
        """A transactional id that was never seen, before its first step."""
        return cls(
            transactional_id=transactional_id, producer_id=producer_id, timeout_ms=timeout_ms, partitions=_NO_PARTITIONS
        )

    @property
    def is_prepared(self) -> bool:
        """Whether its end is decided, and markers are being written."""
        return self.state in _PREPARED

    @property
    def is_ongoing(self) -> bool:
        return self.state is State.ONGOING

    @property
    def is_at_rest(self) -> bool:
        """Whether no transaction is under way."""
        return not (self.is_ongoing or self.is_prepared)

    @property
    def is_exhausted(self) -> bool:
        """No epoch is left that could be given to a producer: the highest is for fencing it."""
        return self.epoch >= EPOCH_MAX - 1

    # --- steps

    def initialized(self, *, producer_id: int | None = None, epoch: int, timeout_ms: int, now_ms: int) -> Transaction:
        """InitProducerId was granted, with this epoch and maybe a new producer id."""
        return replace(
            self,
            producer_id=self.producer_id if producer_id is None else producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            epoch=epoch,
            timeout_ms=timeout_ms,
            state=State.EMPTY,
            partitions=_NO_PARTITIONS,
            start_ms=NO_TIME,
            updated_ms=now_ms,
        )

    def with_partitions(self, added: Iterable[tuple[str, int]], client_version: int, now_ms: int) -> Transaction:
        return replace(
            self,
            previous_producer_id=self.producer_id,
            state=State.ONGOING,
            partitions={**self.partitions, **dict.fromkeys(added)},
            start_ms=self.start_ms if self.is_ongoing else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def prepared(
        self, *, commit: bool, epoch: int, next_producer_id: int, client_version: int, now_ms: int
    ) -> Transaction:
        """The end is decided. An abort of what never began counts as begun now."""
        return replace(
            self,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            epoch=epoch,
            state=State.PREPARE_COMMIT if commit else State.PREPARE_ABORT,
            start_ms=self.start_ms if self.is_ongoing else now_ms,
            updated_ms=now_ms,
            client_version=client_version,
        )

    def completed(self, now_ms: int) -> Transaction:
        """All markers are written."""
        rotates = self.client_version >= EPOCH_BUMP_SINCE and self.next_producer_id != NO_PRODUCER_ID
        return replace(
            self,
            producer_id=self.next_producer_id if rotates else self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
            epoch=0 if rotates else self.epoch,
            state=State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT,
            partitions=_NO_PARTITIONS,
            updated_ms=now_ms,
        )

    # --- as stored

    def record(self, transaction_version: int) -> Record:
        """As Kafka writes it at this level of transaction.version."""
        tagged = transaction_version >= _TAGGED_RECORDS_SINCE
        return Record(
            TransactionLogKey(transactional_id=self.transactional_id),
            TransactionLogValue(
                producer_id=self.producer_id,
                previous_producer_id=self.previous_producer_id if tagged else NO_PRODUCER_ID,
                next_producer_id=self.next_producer_id if tagged else NO_PRODUCER_ID,
                producer_epoch=self.epoch,
                transaction_timeout_ms=self.timeout_ms,
                transaction_status=self.state,
                transaction_partitions=None if self.state is State.EMPTY else _by_topic(self.partitions),
                transaction_last_update_timestamp_ms=self.updated_ms,
                transaction_start_timestamp_ms=self.start_ms,
                client_transaction_version=self.client_version if tagged else 0,
            ),
            version=1 if tagged else 0,
        )

    @classmethod
    def stored(cls, transactional_id: str, value: TransactionLogValue) -> Transaction:
        return cls(
            transactional_id=transactional_id,
            producer_id=value.producer_id,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            epoch=value.producer_epoch,
            timeout_ms=value.transaction_timeout_ms,
            state=State(value.transaction_status),
            partitions={
                (topic.topic, index): None
                for topic in value.transaction_partitions or ()
                for index in topic.partition_ids
            },
            start_ms=value.transaction_start_timestamp_ms,
            updated_ms=value.transaction_last_update_timestamp_ms,
            client_version=value.client_transaction_version,
        )


class Bump(NamedTuple):
    """The last step that changed a producer's epoch: a producer that repeats its request gets the outcome again."""

    producer_id: int
    epoch: int
    from_producer_id: int
    from_epoch: int

    def led_to(self, transaction: Transaction) -> bool:
        """Whether this is the step that made the producer what it is."""
        return (self.producer_id, self.epoch) == (transaction.producer_id, transaction.epoch)


def _by_topic(partitions: Participants) -> list[PartitionsSchema]:
    indexes: dict[str, list[int]] = {}
    for topic, index in partitions:
        indexes.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic=topic, partition_ids=found) for topic, found in indexes.items()]


def tombstone(transactional_id: str) -> Record:
    """What removes a transactional id from the log."""
    return Record(TransactionLogKey(transactional_id=transactional_id), None)
