"""Sparse indexes of one segment: offset -> position (`.index`) and timestamp -> offset (`.timeindex`).

Both are arrays of fixed entries, sorted, searched by bisection. The index of the active segment is a bytearray in
memory that reaches its file when the segment is rolled or closed: after a kill the active segment lies past the
recovery point, where Kafka's rules rebuild indexes anyway. The index of a closed segment is its file, mapped when it
is first asked; nothing is held for a segment that nobody reads.

An `.index` entry is (last offset of a batch, position where that batch begins); a `.timeindex` entry is (largest
timestamp so far, last offset of the batch that brought it). Offsets are relative to the segment's base, in 4 bytes.
Kafka preallocates the files of an active segment with zeros, so a closed file that ends in zeros is one that lost
its trimming: it counts as corrupt and is rebuilt.
"""

from __future__ import annotations

from bisect import bisect_right
from struct import Struct
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from millstream.runtime.ports import Disk, File

_OFFSET_ENTRY = Struct(">ii")
_TIME_ENTRY = Struct(">qi")
_INT32 = Struct(">i")
_INT64 = Struct(">q")


class CorruptIndex(Exception):
    """An index file that cannot be the one of its segment; it is rebuilt from the segment."""


class _Index:
    """What both have in common: where the bytes are, and how they reach the file."""

    __slots__ = ("_data", "_disk", "_file", "_saved_bytes", "base_offset", "path")
    entry: ClassVar[Struct]
    entry_bytes: ClassVar[int]

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        self._disk = disk
        self.path = path
        self.base_offset = base_offset
        self._data: bytearray | memoryview | None = None
        self._file: File | None = None
        self._saved_bytes = -1  # how much of a bytearray the file already has; -1: the file is not ours yet

    def __len__(self) -> int:
        return len(self.data) // self.entry_bytes

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def data(self) -> bytearray | memoryview:
        """All entries: the memory of an active index, the mapped file of a closed one."""
        data = self._data
        return self._map() if data is None else data

    def _map(self) -> memoryview:
        try:
            file = self._disk.open(self.path)
        except FileNotFoundError as error:
            raise CorruptIndex(f"{self.path} is missing") from error
        view = file.view()
        self._file, self._data = file, view
        try:
            self._check(view)
        except CorruptIndex:
            self.release()
            raise
        return view

    def _check(self, data: bytearray | memoryview) -> None:
        if len(data) % self.entry_bytes:
            raise CorruptIndex(f"{self.path} has {len(data)} bytes, not a multiple of {self.entry_bytes}")

    def begin(self) -> None:
        """Start empty, as the index of a new or rescanned segment. What the file holds no longer counts."""
        self.release()
        self._data = bytearray()
        self._saved_bytes = -1

    def activate(self) -> None:
        """Take the file's entries into memory, so that more can be added."""
        if isinstance(self._data, bytearray):
            return
        self.release()
        try:
            data = bytearray(self._disk.read_file(self.path))
        except FileNotFoundError as error:
            raise CorruptIndex(f"{self.path} is missing") from error
        self._check(data)
        self._data = data
        self._saved_bytes = len(data)

    def save(self) -> bool:
        """Make the file hold what memory holds; False if it did already."""
        data = self._data
        if not isinstance(data, bytearray) or self._saved_bytes == len(data):
            return False
        if self._saved_bytes < 0:
            file = self._disk.create(self.path)
            self._saved_bytes = 0
        else:
            file = self._disk.open(self.path, writable=True)
        try:
            if self._saved_bytes > len(data):
                file.truncate(len(data))
            elif len(data):
                file.append(data[self._saved_bytes :])
        finally:
            file.close()
        self._saved_bytes = len(data)
        return True

    def retire(self) -> None:
        """The segment no longer grows: save, and keep nothing in memory."""
        self.save()
        if isinstance(self._data, bytearray):
            self._data = None

    def release(self) -> None:
        """Let go of memory, mapping and file; unsaved entries are dropped."""
        data, self._data = self._data, None
        if isinstance(data, memoryview):
            data.release()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _cut(self, entries: int) -> None:
        """Keep the first `entries`."""
        self.activate()
        data = self._data
        assert isinstance(data, bytearray)
        del data[entries * self.entry_bytes :]
        # A shorter list that grows again must not be taken for a longer one of which the file has the beginning.
        self._saved_bytes = -1


class OffsetIndex(_Index):
    """Where in the segment's file an offset is, give or take `index.interval.bytes`."""

    __slots__ = ()
    entry = _OFFSET_ENTRY
    entry_bytes = _OFFSET_ENTRY.size

    def _check(self, data: bytearray | memoryview) -> None:
        super()._check(data)
        if len(data) > self.entry_bytes and _OFFSET_ENTRY.unpack_from(data, len(data) - 8) <= (0, 0):
            raise CorruptIndex(f"{self.path} ends in zeros")

    def append(self, offset: int, position: int) -> None:
        self._data += _OFFSET_ENTRY.pack(offset - self.base_offset, position)  # type: ignore[operator]

    def position_before(self, offset: int) -> int:
        """Where to begin looking for `offset`: the position of the last entry at or before it."""
        data = self.data
        relative = offset - self.base_offset
        found = bisect_right(
            range(len(data) // 8), relative, key=lambda number: _INT32.unpack_from(data, number * 8)[0]
        )
        return int(_INT32.unpack_from(data, found * 8 - 4)[0]) if found else 0

    def boundary_before(self, position: int) -> int:
        """The last known beginning of a batch at or before `position`."""
        data = self.data
        found = bisect_right(
            range(len(data) // 8), position, key=lambda number: _INT32.unpack_from(data, number * 8 + 4)[0]
        )
        return int(_INT32.unpack_from(data, found * 8 - 4)[0]) if found else 0

    def last_position(self) -> int:
        data = self.data
        return int(_INT32.unpack_from(data, len(data) - 4)[0]) if data else 0

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        data = self.data
        relative = offset - self.base_offset - 1
        self._cut(
            bisect_right(range(len(data) // 8), relative, key=lambda number: _INT32.unpack_from(data, number * 8)[0])
        )


class TimeIndex(_Index):
    """From which offset on a timestamp can be found."""

    __slots__ = ()
    entry = _TIME_ENTRY
    entry_bytes = _TIME_ENTRY.size

    def _check(self, data: bytearray | memoryview) -> None:
        super()._check(data)
        if len(data) > self.entry_bytes and _TIME_ENTRY.unpack_from(data, len(data) - 12) <= (0, 0):
            raise CorruptIndex(f"{self.path} ends in zeros")

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if it says something new: a later timestamp than the last one."""
        data = self._data
        assert isinstance(data, bytearray)
        if timestamp > (_INT64.unpack_from(data, len(data) - 12)[0] if data else -1):
            data += _TIME_ENTRY.pack(timestamp, offset - self.base_offset)

    def last(self) -> tuple[int, int]:
        """(timestamp, offset) of the last entry; (-1, base offset) if there is none."""
        data = self.data
        if not data:
            return -1, self.base_offset
        timestamp, relative = _TIME_ENTRY.unpack_from(data, len(data) - 12)
        return timestamp, self.base_offset + relative

    def offset_before(self, timestamp: int) -> int:
        """All records before the returned offset are older than `timestamp`."""
        data = self.data
        found = bisect_right(
            range(len(data) // 12), timestamp, key=lambda number: _INT64.unpack_from(data, number * 12)[0]
        )
        return self.base_offset + int(_INT32.unpack_from(data, found * 12 - 4)[0]) if found else self.base_offset

    def truncate_to(self, offset: int) -> None:
        """Keep the entries below `offset`."""
        data = self.data
        relative = offset - self.base_offset - 1
        self._cut(
            bisect_right(
                range(len(data) // 12), relative, key=lambda number: _INT32.unpack_from(data, number * 12 + 8)[0]
            )
        )
