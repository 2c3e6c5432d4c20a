"""Putting cleaned segments in the place of those they were made from, in the steps that Kafka's recovery expects.

For one cleaned segment at a time, in ascending order:

1. `.cleaned` becomes `.swap`, and the folder is synced: from here a start finishes the swap by itself.
2. The originals become `.deleted`, and the folder is synced: a `.swap` must not lose its name while one still counts.
3. `.swap` loses its suffix.

A stop within step 1 leaves a `.cleaned` with the same offset, so that a start throws both kinds away (KAFKA-12520); the
cleaned segments that come later have higher offsets, and are thrown away too without touching anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log import cutting, names
from millstream.log.recovery import drop_snapshots
from millstream.log.segment import Segment

if TYPE_CHECKING:
    from millstream.log.compaction_plan import CleanedSegment, Plan
    from millstream.log.log import Log


class Swap:
    """The replacements of one compaction, and the segments that they rely on."""

    def __init__(self, log: Log, plan: Plan) -> None:
        self._log = log
        self._dirty_from = plan.first_dirty_offset
        self._planned = {planned.base_offset: planned for planned in plan.segments}
        self._standing = {
            segment.base_offset: segment for segment in log.segments if segment.base_offset in self._planned
        }

    def still_fits(self, cleaned: CleanedSegment) -> bool:
        """Whether the log still has the segments to replace, and those whose newer records made others superfluous.

        Retention may have taken segments from the front meanwhile, which harms nothing unless it took one of these.
        After a truncation nothing is replaced: a record that was left out must not be lost with the newer one.
        """
        log = self._log
        if log.closed or log.is_offline:
            return False
        present = {segment.base_offset: segment for segment in log.segments}
        front = log.segments[0].base_offset
        for base_offset, segment in self._standing.items():
            planned = self._planned[base_offset]
            if present.get(base_offset) is segment and not segment.active and segment.size == planned.size:
                continue
            fell_off_the_front = planned.after <= front
            if base_offset in cleaned.replaces or (planned.after > self._dirty_from and not fell_off_the_front):
                return False
        return True

    def begin(self, cleaned: CleanedSegment) -> None:
        """The first step without its sync, which may take place in a thread."""
        disk, directory = self._log.disk, self._log.directory
        for suffix in _suffixes(cleaned):
            path = f"{directory}/{names.of_offset(cleaned.base_offset, suffix)}"
            disk.rename(path + names.CLEANED, path + names.SWAP)

    def undo(self, cleaned: CleanedSegment) -> None:
        """Instead of `finish`: the originals stay."""
        log = self._log
        if not log.deleted:
            for suffix in _suffixes(cleaned):
                log.disk.remove(f"{log.directory}/{names.of_offset(cleaned.base_offset, suffix)}{names.SWAP}")

    def finish(self, cleaned: CleanedSegment, now_ms: int) -> None:
        """The rest at one go: readers see the old segments before and the new one after."""
        log = self._log
        first = next(number for number, old in enumerate(log.segments) if old.base_offset == cleaned.base_offset)
        behind = first + len(cleaned.replaces)
        for old in log.segments[first:behind]:
            cutting._discard(log, old, now_ms)
            del self._standing[old.base_offset]
        log.disk.sync_directory(log.directory)
        # The log itself last: once it has its name, the segment counts.
        for suffix in reversed(_suffixes(cleaned)):
            path = f"{log.directory}/{names.of_offset(cleaned.base_offset, suffix)}"
            log.disk.rename(path + names.SWAP, path)
        log.segments[first:behind] = [
            Segment(
                log.disk,
                log.directory,
                cleaned.base_offset,
                size=cleaned.size,
                has_txn_index=cleaned.has_txn_index,
                index_interval_bytes=log.config.index_interval_bytes,
            )
        ]
        self._keep_in_mind(cleaned, log.segments[first])
        log.unsynced.wrote(names_changed=True)
        drop_snapshots(log, [offset for offset in cleaned.replaces[1:] if offset in log.snapshots])

    def _keep_in_mind(self, cleaned: CleanedSegment, new: Segment) -> None:
        """The new segment holds the newer records now on which the next replacements rely."""
        last = self._planned[cleaned.replaces[-1]]
        self._standing[cleaned.base_offset] = new
        self._planned[cleaned.base_offset] = type(last)(cleaned.base_offset, cleaned.size, last.after, 0)


def _suffixes(cleaned: CleanedSegment) -> tuple[str, ...]:
    indexes = (names.OFFSET_INDEX, names.TIME_INDEX)
    return (names.LOG, *indexes, names.TXN_INDEX) if cleaned.has_txn_index else (names.LOG, *indexes)
