"""One segment: a `.log` file of batches and the three indexes beside it.

A segment is active (the last one, grows, indexes in memory) or closed (changes no more; its file and indexes are
opened when somebody reads it, so a log of a thousand segments costs one open file). Positions of the newest batches
are remembered: nearly all reads are at the end of a log, and need neither index nor disk to find their place.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from millstream.log import names
from millstream.log.batches import find_batch, headers_from
from millstream.log.indexes import CorruptIndex, OffsetIndex, TimeIndex
from millstream.log.transactions import TransactionIndex
from millstream.records.batch import LENGTH_END

if TYPE_CHECKING:
    from millstream.log.config import LogConfig
    from millstream.records.batch import BatchHeader
    from millstream.runtime.ports import Disk, File

# Positions of this many batches at the end are remembered, at least half of them at any time.
_TAIL_BATCHES = 512
INT32_MAX = (1 << 31) - 1


class Segment:
    """Batches from `base_offset` up to the next segment's."""

    __slots__ = (
        "_directory",
        "_disk",
        "_file",
        "_largest",
        "_tail_offsets",
        "_tail_positions",
        "active",
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "first_timestamp",
        "full",
        "index_interval_bytes",
        "offset_index",
        "path",
        "size",
        "time_index",
        "txn_index",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        *,
        size: int = 0,
        has_txn_index: bool = False,
        index_interval_bytes: int = 4096,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self.base_offset = base_offset
        self.path = f"{directory}/{names.of_offset(base_offset, names.LOG)}"
        self._file: File | None = None
        self.size = size
        self.active = False
        self.offset_index = OffsetIndex(disk, self.file_path(names.OFFSET_INDEX), base_offset)
        self.time_index = TimeIndex(disk, self.file_path(names.TIME_INDEX), base_offset)
        self.txn_index = TransactionIndex(disk, self.file_path(names.TXN_INDEX), exists=has_txn_index)
        self._largest: tuple[int, int] | None = None
        self.bytes_since_index = 0
        self.created_ms = 0
        self.first_timestamp: int | None = None
        self._tail_offsets: list[int] = []
        self._tail_positions: list[int] = []
        self.full = False
        self.index_interval_bytes = index_interval_bytes

    @classmethod
    def create(
        cls, disk: Disk, directory: str, base_offset: int, now_ms: int, index_interval_bytes: int = 4096
    ) -> Segment:
        segment = cls(disk, directory, base_offset, index_interval_bytes=index_interval_bytes)
        segment._file = disk.create(segment.path)
        segment.active = True
        segment.created_ms = now_ms
        segment.offset_index.begin()
        segment.time_index.begin()
        segment._largest = (-1, base_offset)
        return segment

    def file_path(self, suffix: str) -> str:
        return f"{self._directory}/{names.of_offset(self.base_offset, suffix)}"

    @property
    def file(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path, writable=self.active)
        return self._file

    # Growing

    def note(self, last_offset: int, max_timestamp: int, size: int, config: LogConfig) -> None:
        """Account for a batch that was written behind the last."""
        position = self.size
        self.size = position + size
        if max_timestamp > self._largest[0]:  # type: ignore[index]  # an active segment knows it
            self._largest = (max_timestamp, last_offset)
        if position == 0:
            self.first_timestamp = max_timestamp
        offsets = self._tail_offsets
        offsets.append(last_offset)
        self._tail_positions.append(position)
        if len(offsets) >= _TAIL_BATCHES:
            del offsets[: _TAIL_BATCHES // 2]
            del self._tail_positions[: _TAIL_BATCHES // 2]
        if self.bytes_since_index > config.index_interval_bytes:
            self._add_index_entry(last_offset, position, config.segment_index_bytes)
        self.bytes_since_index += size

    def _add_index_entry(self, last_offset: int, position: int, index_bytes_max: int) -> None:
        """Enter the batch at `position`, with the largest timestamp up to and including it."""
        self.offset_index.append(last_offset, position)
        self.time_index.maybe_append(*self.largest)
        self.bytes_since_index = 0
        self.full = (
            self.offset_index.size + OffsetIndex.entry_bytes > index_bytes_max
            # One more is kept for the entry that closing the segment adds.
            or self.time_index.size + 2 * TimeIndex.entry_bytes > index_bytes_max
        )

    @property
    def largest(self) -> tuple[int, int]:
        """The largest timestamp, and the last offset of the first batch that has it; (-1, base offset) if empty."""
        if self._largest is None:
            self._largest = self._read_largest()
        return self._largest

    def _read_largest(self) -> tuple[int, int]:
        """Of a closed segment: its time index ends with it."""
        try:
            return self.time_index.last()
        except CorruptIndex:
            self.rebuild_indexes()
            return self.time_index.last()
        finally:
            # Retention asks every segment once: that shall not keep every index open.
            self.time_index.release()

    def largest_timestamp_or_modified(self) -> int:
        """What retention counts from: the newest record, or the file's own age if no record has a timestamp."""
        timestamp = self.largest[0]
        return timestamp if timestamp >= 0 else self._disk.modified_ms(self.path)

    def rolling_timestamp(self) -> int | None:
        """The timestamp of the first batch, from which `segment.ms` counts; None while there is none."""
        if self.first_timestamp is None and self.size:
            for _, header in headers_from(self.file, 0, self.size):
                self.first_timestamp = header.max_timestamp
                break
        return self.first_timestamp

    def fits(self, last_offset: int) -> bool:
        """Whether the offset can be told relative to the base, in the four bytes of an index entry."""
        return 0 <= last_offset - self.base_offset <= INT32_MAX

    # Finding

    def position_of(self, offset: int) -> int | None:
        """Where the first batch begins that reaches `offset`; None if this segment ends before."""
        offsets = self._tail_offsets
        if offsets and (found := bisect_left(offsets, offset)):
            return self._tail_positions[found] if found < len(offsets) else None
        # The first batch remembered may not be the first that reaches `offset`: then the index tells.
        return find_batch(self.file, self.position_before(offset), self.size, offset)

    def position_before(self, offset: int) -> int:
        """A beginning of a batch at or before the one that reaches `offset`."""
        try:
            return self.offset_index.position_before(offset)
        except CorruptIndex:
            self.rebuild_indexes()
            return self.offset_index.position_before(offset)

    def offset_before(self, timestamp: int) -> int:
        """All records before the returned offset are older than `timestamp`."""
        try:
            return self.time_index.offset_before(timestamp)
        except CorruptIndex:
            self.rebuild_indexes()
            return self.time_index.offset_before(timestamp)

    def whole_batches(self, position: int, bytes_max: int) -> int:
        """How many bytes of whole batches from `position` fit into `bytes_max`; 0 if not even one does."""
        boundary = self.offset_index.boundary_before(position + bytes_max)
        if boundary > position:
            return boundary - position
        length = 0
        for at, header in headers_from(self.file, position, self.size):
            end = at + header.batch_length + LENGTH_END - position
            if end > bytes_max:
                break
            length = end
        return length

    # Changing between active and closed

    def activate(self, now_ms: int) -> int | None:
        """Make this the segment that grows, trusting its file; returns the next offset, None if it is empty.

        CorruptIndex if an index is missing or cannot be right: then the segment has to be scanned.
        """
        self.become_active(now_ms)
        self.offset_index.activate()
        self.time_index.activate()
        position = self.offset_index.last_position()
        if position > self.size:
            raise CorruptIndex(f"{self.offset_index.path} points behind the end of the log")
        return self._load_tail(position)

    def become_active(self, now_ms: int) -> None:
        """Open for appending; the caller sees to the indexes."""
        self.close_file()
        self.active = True
        self.created_ms = now_ms
        self.first_timestamp = None
        self.full = False

    def _load_tail(self, position: int) -> int | None:
        timestamp, offset = self.time_index.last()
        self._tail_offsets.clear()
        self._tail_positions.clear()
        next_offset = None
        for at, header in headers_from(self.file, position, self.size):
            next_offset = header.next_offset
            if header.count and header.max_timestamp > timestamp:
                timestamp, offset = header.max_timestamp, header.last_offset
            self._tail_offsets.append(header.last_offset)
            self._tail_positions.append(at)
        self._largest = (timestamp, offset)
        self.bytes_since_index = 0
        return next_offset

    def finish(self) -> None:
        """The segment no longer grows: its indexes go to their files, and all but its length is forgotten."""
        self.time_index.maybe_append(*self.largest)
        self.offset_index.retire()
        self.time_index.retire()
        self.txn_index.release()
        self._tail_offsets.clear()
        self._tail_positions.clear()
        self.active = False

    def save_indexes(self) -> bool:
        """Bring the files of an active segment's indexes up to date, as a clean stop leaves them."""
        self.time_index.maybe_append(*self.largest)
        saved_offsets = self.offset_index.save()
        saved_times = self.time_index.save()
        return saved_offsets or saved_times

    def truncate_to(self, offset: int, now_ms: int) -> int | None:
        """Cut off the batch that reaches `offset` and all behind it; returns the next offset, None if now empty."""
        position = self.position_of(offset)
        if not self.active:
            try:
                self.activate(now_ms)
            except CorruptIndex:
                self.active = False
                self.rebuild_indexes()
                self.activate(now_ms)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        if position is not None:
            self.file.truncate(position)
            self.size = position
        if self.size == 0:
            self.created_ms = now_ms
            self.first_timestamp = None
        return self._load_tail(self.offset_index.last_position())

    def rebuild_indexes(self) -> None:
        """Write both indexes of a closed segment anew, from the headers of its batches."""
        assert not self.active
        self.offset_index.begin()
        self.time_index.begin()
        self._largest = (-1, self.base_offset)
        indexed_at = 0
        for position, header in headers_from(self.file, 0, self.size, chunk_bytes=1 << 20):
            indexed_at = self.index_scanned(position, header, indexed_at)
        self.finish()

    def begin_scan(self, now_ms: int) -> None:
        """Forget what the indexes say; `index_scanned` builds them anew."""
        self.become_active(now_ms)
        self.offset_index.begin()
        self.time_index.begin()
        self.txn_index.reset()
        self._largest = (-1, self.base_offset)
        self._tail_offsets.clear()
        self._tail_positions.clear()

    def end_scan(self, size: int) -> None:
        """What was found whole is what there is."""
        self.size = size
        self.bytes_since_index = size - self.offset_index.last_position()

    def index_scanned(self, position: int, header: BatchHeader, indexed_at: int) -> int:
        """Enter a batch found by a scan; returns where the last batch begins that has an entry."""
        last_offset = header.last_offset
        # What compaction emptied keeps the time of records that are gone, which nobody can find any more.
        if header.count and header.max_timestamp > self.largest[0]:
            self._largest = (header.max_timestamp, last_offset)
        if position - indexed_at > self.index_interval_bytes:
            self.offset_index.append(last_offset, position)
            self.time_index.maybe_append(*self.largest)
            return position
        return indexed_at

    def close_file(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def close(self) -> None:
        self.offset_index.release()
        self.time_index.release()
        self.txn_index.release()
        self.close_file()
