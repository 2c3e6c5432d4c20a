"""What fsync has to reach before the recovery point may move.

Segments from the recovery point on, small files written since (indexes, snapshots, the epoch checkpoint), and the
folder if names in it changed (KAFKA-3968). A target opens its file by name and closes it again, so it can run in a
thread while the log goes on, rolls or drops the segment (KAFKA-15046: nothing is locked); a file that is gone by
then needs no sync. One flush at a time per log: `confirm` belongs to the last `targets`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.runtime.ports import Disk


class SyncTarget(NamedTuple):
    """A file or folder to sync."""

    disk: Disk
    path: str
    is_directory: bool

    def sync(self) -> None:
        try:
            if self.is_directory:
                self.disk.sync_directory(self.path)
                return
            file = self.disk.open(self.path, writable=True)
        except FileNotFoundError:
            return
        try:
            file.sync()
        finally:
            file.close()


class Unsynced:
    """Files of one log that were written and not synced, other than those of segments past the recovery point."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        # Path -> number of the write, so that a write during a sync is not taken for synced.
        self._files: dict[str, int] = {}
        self._directories: dict[str, int] = {}
        self._number = 0
        self._started_number = 0
        self._reaches = 0

    def wrote(self, *paths: str, names_changed: bool = False) -> None:
        self._number += 1
        for path in paths:
            self._files[path] = self._number
        if names_changed:
            self._directories[self._directory] = self._number

    def made_directory(self) -> None:
        """The folder itself is new: its name is not safe before its parent is synced."""
        self._number += 1
        self._directories[self._directory.rpartition("/")[0]] = self._number

    def targets(self, log: Log) -> list[SyncTarget]:
        self._started_number = self._number
        self._reaches = log.end_offset
        found = []
        if log.recovery_point < log.end_offset:
            segments = log.segments
            first = bisect_right(segments, log.recovery_point, key=lambda segment: segment.base_offset) - 1
            found = [SyncTarget(self._disk, segment.path, is_directory=False) for segment in segments[max(first, 0) :]]
        found += [SyncTarget(self._disk, path, is_directory=False) for path in self._files]
        # Folders go last: a name is worth nothing before its content.
        found += [SyncTarget(self._disk, path, is_directory=True) for path in self._directories]
        return found

    def confirm(self, end_offset: int) -> int:
        """The targets are synced; returns how far the log is durable now."""
        started = self._started_number
        for written in (self._files, self._directories):
            for path in [path for path, number in written.items() if number <= started]:
                del written[path]
        return min(end_offset, self._reaches)

    def truncated(self, end_offset: int) -> None:
        """A sync that is under way does not speak for what is written at these offsets from now on."""
        self._reaches = min(self._reaches, end_offset)
