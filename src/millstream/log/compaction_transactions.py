"""Which batches and markers of transactions compaction may drop.

Records of an aborted transaction go at once, whatever their keys. A marker may go only when no batch of its transaction
is left before it, and then only a `delete.retention.ms` later, so that a reader that is in the middle of the
transaction still learns how it ended. A transaction may reach over many segments (KAFKA-8351): this is fed every batch
of the log in order, and knows every transaction whose abort is written anywhere, in later segments too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import CorruptMessage
from millstream.records.building import ControlType
from millstream.records.reading import control_record

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.log.transactions import AbortedTransaction
    from millstream.records.batch import BatchHeader


class _Ongoing:
    """An aborted transaction between its first offset and its marker."""

    __slots__ = ("aborted", "seen")

    def __init__(self, aborted: AbortedTransaction) -> None:
        self.aborted = aborted
        self.seen = False


class TransactionsSeen:
    """The transactions of a log while it is read from one end to the other."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborted: dict[int, _Ongoing] = {}
        self._committed: dict[int, None] = {}
        self.kept: list[AbortedTransaction] = []
        """Aborted transactions of which batches are left, as their markers come by: the new transaction index."""

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether the records of this data batch were aborted."""
        self._reach(header.last_offset)
        if not header.is_transactional:
            return False
        ongoing = self._aborted.get(header.producer_id)
        # Who begins to read behind a marker never sees it: the producer is in its next transaction then.
        if ongoing is None or ongoing.aborted.last_offset < header.base_offset:
            self._committed[header.producer_id] = None
            return False
        ongoing.seen = True
        return True

    def marker_ends_nothing(self, header: BatchHeader, chunk: bytes, position: int) -> bool:
        """Whether no batch of the transaction that this control batch ends is left."""
        self._reach(header.last_offset)
        if header.count == 0:
            return True
        try:
            control = control_record(chunk, position)
        except CorruptMessage:
            return False
        if control.type == ControlType.ABORT:
            ongoing = self._aborted.pop(header.producer_id, None)
            if ongoing is None or not ongoing.seen:
                return True
            self.kept.append(ongoing.aborted)
            return False
        if control.type == ControlType.COMMIT:
            if header.producer_id in self._committed:
                del self._committed[header.producer_id]
                return False
            return True
        return False

    def _reach(self, offset: int) -> None:
        coming = self._coming
        while coming and coming[-1].first_offset <= offset:
            aborted = coming.pop()
            self._aborted[aborted.producer_id] = _Ongoing(aborted)
