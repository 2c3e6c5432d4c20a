"""The index of aborted transactions of one segment (`.txnindex`), for readers of committed records only.

    version int16 = 0 | producer id int64 | first offset int64 | last offset int64 | last stable offset int64

An entry is written with the marker that aborts a transaction, so few segments have a file. `last offset` is the
marker's; `last stable offset` is where the stable part of the log ended right after it, which lets a reader stop
searching: whatever was aborted later began at or above it.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from millstream.runtime.ports import Disk, File

_ENTRY = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """One transaction whose records between the two offsets must not reach a reader of committed records."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions whose marker is in this segment, in the order of the markers."""

    __slots__ = ("_disk", "_entries", "_file", "path")

    def __init__(self, disk: Disk, path: str, *, exists: bool) -> None:
        self._disk = disk
        self.path = path
        self._entries: list[AbortedTransaction] | None = None if exists else []
        self._file: File | None = None

    @property
    def entries(self) -> list[AbortedTransaction]:
        if self._entries is None:
            content = self._disk.read_file(self.path)
            whole = len(content) - len(content) % _ENTRY.size
            self._entries = [AbortedTransaction(*fields[1:]) for fields in _ENTRY.iter_unpack(content[:whole])]
        return self._entries

    def append(self, aborted: AbortedTransaction) -> None:
        entries = self.entries
        if self._file is None:
            self._file = self._disk.open(self.path, writable=True) if entries else self._disk.create(self.path)
        self._file.append(_ENTRY.pack(0, *aborted))
        entries.append(aborted)

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions whose marker is at or above `offset`."""
        kept = [aborted for aborted in self.entries if aborted.last_offset < offset]
        if len(kept) != len(self.entries):
            self.reset(kept)

    def reset(self, entries: list[AbortedTransaction] | None = None) -> None:
        """Write the file anew with these entries; remove it if there are none."""
        had_some = self._entries is None or bool(self._entries)
        self.release()
        self._entries = []
        if entries:
            self._file = self._disk.create(self.path)
            self._file.append(b"".join(_ENTRY.pack(0, *aborted) for aborted in entries))
            self._entries = list(entries)
        elif had_some and self._disk.exists(self.path):
            self._disk.remove(self.path)

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def has_file(self) -> bool:
        return self._entries is None or bool(self._entries)
