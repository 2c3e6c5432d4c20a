"""What a log knows of its idempotent and transactional producers, by KIP-98's rules.

Per producer id: the epoch, the last five batches (a producer keeps at most five in flight, so each of them can come
again), and the first offset of an open transaction. A batch must continue the sequence of the last one; one that is
among the five is a duplicate, answered with the offsets it already has; anything else is out of order. Sequences wrap
from 2^31 - 1 to 0. `check` only reads; `apply` is called once the batch is in the file, so an append that failed
leaves no trace (KAFKA-6683).

Where the stable part of the log ends is known here too: at the first offset of the oldest transaction that is open,
or that ended with a marker which is not yet below the high watermark.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from millstream.log.snapshots import SnapshotEntry
from millstream.protocol.errors import (
    CoordinatorFenced,
    InvalidProducerEpoch,
    InvalidTransactionState,
    OutOfOrderSequence,
)
from millstream.records.batch import TRANSACTIONAL_BIT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.records.batch import BatchHeader

BATCHES_KEPT = 5
NO_OFFSET = -1
NO_EPOCH = -1
EPOCH_MAX = 32767
NO_SEQUENCE = -1
SEQUENCES = 1 << 31


class Origin(Enum):
    """Who appends as a leader: clients are checked, what this node's own coordinators and quorum wrote is not."""

    CLIENT = "client"
    COORDINATOR = "coordinator"
    RAFT_LEADER = "raft leader"


class KnownBatch(NamedTuple):
    """One of the last batches of a producer."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class Producer:
    """One producer id in one partition."""

    __slots__ = (
        "batches", "coordinator_epoch", "epoch", "last_marker", "last_timestamp", "producer_id", "txn_first_offset",
    )  # fmt: skip

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id = producer_id
        self.epoch = epoch
        self.coordinator_epoch = -1
        self.last_timestamp = -1
        self.last_marker = NO_OFFSET
        self.txn_first_offset = NO_OFFSET
        self.batches: deque[KnownBatch] = deque(maxlen=BATCHES_KEPT)

    @property
    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE

    @property
    def last_offset(self) -> int:
        return self.batches[-1].last_offset if self.batches else NO_OFFSET

    def expired(self, now_ms: int, expiration_ms: int) -> bool:
        return self.txn_first_offset == NO_OFFSET and now_ms - self.last_timestamp >= expiration_ms


class CompletedTransaction(NamedTuple):
    """A transaction that a marker has just ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class ProducerStates:
    """All producers of one log, up to `end_offset` of what was applied."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}
        # Transactions by first offset, oldest first: offsets only grow, so insertion order is the order wanted.
        self._open: dict[int, int] = {}
        self._unreplicated: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._producers)

    def get(self, producer_id: int) -> Producer | None:
        return self._producers.get(producer_id)

    def all(self) -> list[Producer]:
        return list(self._producers.values())

    # Data batches

    def check(self, producer_id: int, epoch: int, base_sequence: int, count: int) -> KnownBatch | None:
        """Refuse a client's batch that is not the next one; return the known one that it duplicates."""
        producer = self._producers.get(producer_id)
        if producer is None:
            # Nothing is known (any more: retention may have taken it), so any sequence may begin here.
            return None
        if epoch != producer.epoch:
            if epoch < producer.epoch:
                raise InvalidProducerEpoch(
                    f"epoch {epoch} of producer {producer_id} is older than the last one seen, {producer.epoch}"
                )
            if base_sequence != 0 and producer.epoch != NO_EPOCH:
                raise OutOfOrderSequence(
                    f"producer {producer_id} begins epoch {epoch} with sequence {base_sequence} instead of 0"
                )
            return None
        last_sequence = (base_sequence + count - 1) % SEQUENCES
        batches = producer.batches
        if batches:
            last = batches[-1]
            if base_sequence == (last.last_sequence + 1) % SEQUENCES:
                return None
            for known in batches:
                if known.base_sequence == base_sequence and known.last_sequence == last_sequence:
                    return known
            expected = (last.last_sequence + 1) % SEQUENCES
        else:
            # Only markers were seen in this epoch: it begins with 0.
            if base_sequence == 0:
                return None
            expected = 0
        raise OutOfOrderSequence(
            f"producer {producer_id} sent sequence {base_sequence} in epoch {epoch} where {expected} was due"
        )

    def check_transaction(self, producer_id: int, *, transactional: bool) -> None:
        producer = self._producers.get(producer_id)
        if producer is not None and producer.txn_first_offset != NO_OFFSET and not transactional:
            raise InvalidTransactionState

    def apply(self, header: BatchHeader, base_offset: int) -> None:
        """Take note of a batch of records that is in the log at `base_offset`."""
        (_, _, _, _, _, attributes, last_offset_delta, _, timestamp, producer_id, epoch, base_sequence, _) = header
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(producer_id, epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        # What a coordinator writes in a client's name has no sequence.
        last_sequence = (base_sequence + last_offset_delta) % SEQUENCES if base_sequence >= 0 else NO_SEQUENCE
        producer.batches.append(
            KnownBatch(base_sequence, last_sequence, base_offset, base_offset + last_offset_delta, timestamp)
        )
        producer.last_timestamp = timestamp
        if attributes & TRANSACTIONAL_BIT and producer.txn_first_offset == NO_OFFSET:
            producer.txn_first_offset = base_offset
            self._open[base_offset] = producer_id

    # Markers

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, *, transaction_version: int = 0
    ) -> None:
        """Refuse a marker that is out of date.

        With transaction.version 2 an end always bumps the epoch (KIP-1228): a marker with the epoch of a transaction
        that is open here belongs to the one before it, and comes late. With nothing open it is only a repetition.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        late = (
            transaction_version >= 2
            and epoch == producer.epoch
            and epoch != EPOCH_MAX
            and producer.txn_first_offset != NO_OFFSET
        )
        if epoch < producer.epoch or late:
            raise InvalidProducerEpoch(
                f"a marker with epoch {epoch} of producer {producer_id} is older than the last one, {producer.epoch}"
            )
        if coordinator_epoch < producer.coordinator_epoch:
            raise CoordinatorFenced

    def last_marker_of(self, producer_id: int) -> int:
        """Where the producer's last transaction ended, as far as this log has it in memory."""
        producer = self._producers.get(producer_id)
        return NO_OFFSET if producer is None else producer.last_marker

    def apply_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, timestamp: int, *, commit: bool
    ) -> CompletedTransaction | None:
        """Take note of an end-of-transaction marker; returns the transaction that it ended, if it held records."""
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(producer_id, epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = timestamp
        producer.last_marker = offset
        first_offset, producer.txn_first_offset = producer.txn_first_offset, NO_OFFSET
        if first_offset == NO_OFFSET:
            return None
        return CompletedTransaction(producer_id, first_offset, offset, not commit)

    def stable_offset_after(self, completed: CompletedTransaction) -> int:
        """Where the stable part ends once `completed` is decided: the entry of the transaction index tells it."""
        for first_offset in self._open:
            if first_offset != completed.first_offset:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTransaction) -> None:
        self._open.pop(completed.first_offset, None)
        self._unreplicated[completed.first_offset] = completed.last_offset

    def replicated_to(self, high_watermark: int) -> None:
        """Transactions whose marker is below the high watermark no longer hold anybody up."""
        if self._unreplicated:
            self._unreplicated = {first: last for first, last in self._unreplicated.items() if last >= high_watermark}

    @property
    def first_unstable_offset(self) -> int | None:
        if not self._open and not self._unreplicated:
            return None
        oldest_open = next(iter(self._open), None)
        if not self._unreplicated:
            return oldest_open
        oldest = min(self._unreplicated)
        return oldest if oldest_open is None else min(oldest, oldest_open)

    # Time, and what survives a restart

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers that were silent for too long; those with an open transaction stay."""
        gone = [key for key, producer in self._producers.items() if producer.expired(now_ms, expiration_ms)]
        for producer_id in gone:
            del self._producers[producer_id]
        return len(gone)

    def clear(self) -> None:
        self._producers.clear()
        self._open.clear()
        self._unreplicated.clear()

    def snapshot(self) -> list[SnapshotEntry]:
        made = []
        for producer in self._producers.values():
            last = producer.batches[-1] if producer.batches else None
            made.append(
                SnapshotEntry(
                    producer.producer_id,
                    producer.epoch,
                    last.last_sequence if last else NO_SEQUENCE,
                    last.last_offset if last else NO_OFFSET,
                    last.last_offset - last.base_offset if last else 0,
                    producer.last_timestamp,
                    producer.coordinator_epoch,
                    producer.txn_first_offset,
                )
            )
        return made

    def restore(self, entries: Iterable[SnapshotEntry], now_ms: int, expiration_ms: int) -> None:
        self.clear()
        for entry in entries:
            producer = Producer(entry.producer_id, entry.epoch)
            producer.coordinator_epoch = entry.coordinator_epoch
            producer.last_timestamp = entry.timestamp
            producer.txn_first_offset = entry.txn_first_offset
            if entry.last_sequence != NO_SEQUENCE or entry.last_offset != NO_OFFSET:
                producer.batches.append(
                    KnownBatch(
                        (entry.last_sequence - entry.offset_delta) % SEQUENCES
                        if entry.last_sequence >= 0
                        else NO_SEQUENCE,
                        entry.last_sequence,
                        entry.last_offset - entry.offset_delta,
                        entry.last_offset,
                        entry.timestamp,
                    )
                )
            if not producer.expired(now_ms, expiration_ms):
                self._producers[entry.producer_id] = producer
                if producer.txn_first_offset != NO_OFFSET:
                    self._open[producer.txn_first_offset] = producer.producer_id
        self._open = dict(sorted(self._open.items()))
