"""Writing a segment that is to replace others: its log and its three indexes, all under `.cleaned`, all synced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log import names
from millstream.log.indexes import OffsetIndex, TimeIndex
from millstream.log.transactions import TransactionIndex

if TYPE_CHECKING:
    from millstream.log.transactions import AbortedTransaction
    from millstream.records.batch import BatchHeader
    from millstream.runtime.ports import Buffer, Disk

_WRITE_BYTES = 1 << 20


class SegmentWriter:
    """Batches in, four files out."""

    def __init__(self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int) -> None:
        self._disk = disk
        self._paths = {
            suffix: f"{directory}/{names.of_offset(base_offset, suffix)}{names.CLEANED}"
            for suffix in names.SEGMENT_FILES
        }
        self._file = disk.create(self._paths[names.LOG])
        self._offset_index = OffsetIndex(disk, self._paths[names.OFFSET_INDEX], base_offset)
        self._time_index = TimeIndex(disk, self._paths[names.TIME_INDEX], base_offset)
        self._offset_index.begin()
        self._time_index.begin()
        self._interval_bytes = index_interval_bytes
        self._indexed_at = 0
        self._largest = (-1, base_offset)
        self._pending: list[Buffer] = []
        self._pending_bytes = 0
        self.size = 0

    def append(self, batch: Buffer, header: BatchHeader) -> None:
        # An empty batch keeps the time of records that are gone, which nobody can find any more.
        if header.count and header.max_timestamp > self._largest[0]:
            self._largest = (header.max_timestamp, header.last_offset)
        if self.size - self._indexed_at > self._interval_bytes:
            self._offset_index.append(header.last_offset, self.size)
            self._time_index.maybe_append(*self._largest)
            self._indexed_at = self.size
        self._pending.append(batch)
        self._pending_bytes += len(batch)
        self.size += len(batch)
        if self._pending_bytes >= _WRITE_BYTES:
            self._write()

    def _write(self) -> None:
        if self._pending:
            self._file.append(b"".join(self._pending))
            self._pending.clear()
            self._pending_bytes = 0

    def finish(self, aborted: list[AbortedTransaction]) -> None:
        """Write out everything and sync it."""
        self._write()
        self._file.sync()
        self._time_index.maybe_append(*self._largest)
        self._offset_index.retire()
        self._time_index.retire()
        written = [names.OFFSET_INDEX, names.TIME_INDEX]
        if aborted:
            index = TransactionIndex(self._disk, self._paths[names.TXN_INDEX], exists=False)
            index.reset(aborted)
            index.release()
            written.append(names.TXN_INDEX)
        for suffix in written:
            file = self._disk.open(self._paths[suffix], writable=True)
            file.sync()
            file.close()

    def close(self) -> None:
        self._file.close()
        self._offset_index.release()
        self._time_index.release()
