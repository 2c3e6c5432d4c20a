"""Compaction: keeping the newest record of every key. Here is decided which log is cleaned, and how far.

A log has a clean part, which the last run left without duplicates, and a dirty one behind it, up to the first segment
that may not be cleaned: the active one, one that reaches above the last stable offset (KAFKA-13194), or one with
records younger than `min.compaction.lag.ms`. The log with the largest dirty share is next, if that is above
`min.cleanable.dirty.ratio`, or if a dirty record is older than `max.compaction.lag.ms`.

The work is done by a child process (`compaction_rewrite`), because it is nothing but computing; this side makes the
plan, puts the new segments in place (`compaction_swap`) and moves the checkpoint. Appends, reads and retention go on
meanwhile. How far a log is clean stands in `cleaner-offset-checkpoint`, as in Kafka; losing it costs one longer run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from millstream.log import compaction_swap, names
from millstream.log.compaction_keys import BYTES_PER_KEY
from millstream.log.compaction_plan import (
    PLAN_FILE,
    RESULT_FILE,
    CleanedSegment,
    LastOfProducer,
    Plan,
    PlannedSegment,
    Result,
)
from millstream.log.config import FOREVER
from millstream.log.indexes import OffsetIndex
from millstream.runtime.ports import ChildFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.log.checkpoints import TopicPartition
    from millstream.log.directory import LogDirectory
    from millstream.log.log import Log
    from millstream.log.segment import Segment
    from millstream.runtime.ports import Clock, Workers

DEDUPE_BUFFER_BYTES = 128 << 20
"""Kafka's default of `log.cleaner.dedupe.buffer.size`."""


class Dirtiness(NamedTuple):
    """How much of a log could be cleaned."""

    first_dirty_offset: int
    upper_bound_offset: int
    clean_bytes: int
    dirty_bytes: int
    is_overdue: bool
    """Whether a dirty record is older than `max.compaction.lag.ms`."""

    @property
    def ratio(self) -> float:
        total_bytes = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total_bytes if total_bytes else 0.0


class Compacted(NamedTuple):
    """What a run did."""

    partition: TopicPartition
    bytes_before: int
    bytes_after: int
    opaque_batches: int
    """Batches that lie about their inside, and were left as they are."""
    damage: str | None


def dirtiness(log: Log, checkpoint: int | None, now_ms: int) -> Dirtiness:
    """How dirty the log is, given up to which offset it was cleaned the last time."""
    config = log.config
    first_dirty = log.start_offset if checkpoint is None else max(checkpoint, log.start_offset)
    if first_dirty > log.end_offset:
        # The log was truncated, or is another than the checkpoint spoke of.
        first_dirty = log.start_offset
    bound = min(log.last_stable_offset, log.active.base_offset)
    upper_bound = log.segments[0].base_offset
    clean_bytes = dirty_bytes = 0
    is_overdue = False
    for number, segment in enumerate(log.segments[:-1]):
        after = log.segments[number + 1].base_offset
        is_dirty = after > first_dirty
        if after > bound or (is_dirty and _is_too_young(segment, config.min_compaction_lag_ms, now_ms)):
            break
        upper_bound = after
        if is_dirty:
            dirty_bytes += segment.size
            is_overdue = is_overdue or _is_overdue(segment, config.max_compaction_lag_ms, now_ms)
        else:
            clean_bytes += segment.size
    return Dirtiness(first_dirty, max(upper_bound, first_dirty), clean_bytes, dirty_bytes, is_overdue)


def _is_too_young(segment: Segment, lag_ms: int, now_ms: int) -> bool:
    return lag_ms > 0 and now_ms - segment.largest_timestamp_or_modified() < lag_ms


def _is_overdue(segment: Segment, lag_ms: int, now_ms: int) -> bool:
    """Whether its first batch is older than a log may stay dirty."""
    if lag_ms >= FOREVER:
        return False
    first = segment.rolling_timestamp()
    return first is not None and 0 < first < now_ms - lag_ms


def is_due(log: Log, dirty: Dirtiness) -> bool:
    if dirty.dirty_bytes == 0:
        return False
    return dirty.is_overdue or dirty.ratio > log.config.min_cleanable_dirty_ratio


def make_plan(log: Log, dirty: Dirtiness, now_ms: int, dedupe_buffer_bytes: int = DEDUPE_BUFFER_BYTES) -> Plan:
    config = log.config
    segments = []
    for number, segment in enumerate(log.segments[:-1]):
        after = log.segments[number + 1].base_offset
        if after > dirty.upper_bound_offset:
            break
        # The old indexes say how large a merged one can become; an estimate saves opening them all.
        index_bytes = segment.size // max(config.index_interval_bytes, 1) * OffsetIndex.entry_bytes
        segments.append(PlannedSegment(segment.base_offset, segment.size, after, index_bytes))
    aborted = [
        aborted
        for segment in log.segments
        for aborted in segment.txn_index.entries
        if aborted.first_offset < dirty.upper_bound_offset
    ]
    return Plan(
        directory=log.directory,
        now_ms=now_ms,
        first_dirty_offset=dirty.first_dirty_offset,
        upper_bound_offset=dirty.upper_bound_offset,
        segments=segments,
        producers=[
            LastOfProducer(producer.producer_id, producer.epoch, producer.last_offset)
            for producer in log.producers.all()
        ],
        aborted=aborted,
        delete_retention_ms=config.delete_retention_ms,
        segment_bytes=config.segment_bytes,
        segment_index_bytes=config.segment_index_bytes,
        index_interval_bytes=config.index_interval_bytes,
        keys_max=max(dedupe_buffer_bytes // BYTES_PER_KEY, 1),
    )


class Compactor:
    """Cleans the logs of a broker, one at a time."""

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        workers: Workers,
        clock: Clock,
        *,
        dedupe_buffer_bytes: int = DEDUPE_BUFFER_BYTES,
    ) -> None:
        self._directories = directories
        self._workers = workers
        self._clock = clock
        self.dedupe_buffer_bytes = dedupe_buffer_bytes
        self.uncleanable: dict[TopicPartition, str] = {}
        """Partitions with a damaged segment, and what is wrong; they are not tried again before the next start."""
        self._failures: dict[TopicPartition, int] = {}

    async def run_once(self) -> Compacted | None:
        """Clean the log that needs it most; None if none does.

        ChildFailed if the child did: nothing has happened then. StorageError if the disk failed while the new
        segments were put in place: the partition is offline, and the next start finishes or undoes the swap.
        """
        found = self._dirtiest()
        if found is None:
            return None
        directory, key, dirty = found
        log = directory.logs[key]
        bytes_before = log.size_bytes
        try:
            result = await self._clean(log, dirty, directory, key)
        except (OSError, ChildFailed) as error:
            if log.deleted:
                return None
            if isinstance(error, ChildFailed):
                # It may have been the machine's fault (memory, a full disk): others first, then this one again.
                self._failures[key] = self._failures.get(key, 0) + 1
                raise
            log.mark_offline(error)
            raise log.offline_error() from error
        self._failures.pop(key, None)
        if result.damage is not None:
            self.uncleanable[key] = result.damage
        return Compacted(key, bytes_before, log.size_bytes, result.opaque_batches, result.damage)

    def _dirtiest(self) -> tuple[LogDirectory, TopicPartition, Dirtiness] | None:
        now_ms = self._clock.wall_ms()
        candidates = []
        for directory in self._directories:
            for key, log in directory.logs.items():
                if not log.config.compact or log.closed or log.is_offline or key in self.uncleanable:
                    continue
                dirty = dirtiness(log, directory.cleaner_offsets.get(key), now_ms)
                if is_due(log, dirty):
                    candidates.append((directory, key, dirty))
        return max(candidates, key=lambda found: (-self._failures.get(found[1], 0), found[2].ratio), default=None)

    async def _clean(self, log: Log, dirty: Dirtiness, directory: LogDirectory, key: TopicPartition) -> Result:
        disk = log.disk
        _tidy(log)
        plan = make_plan(log, dirty, self._clock.wall_ms(), self.dedupe_buffer_bytes)
        swap = compaction_swap.Swap(log, plan)
        disk.replace_file(f"{log.directory}/{PLAN_FILE}", msgspec.json.encode(plan))
        in_place = False
        try:
            await self._workers.in_child("millstream.log.compact", [log.directory])
            result = msgspec.json.decode(disk.read_file(f"{log.directory}/{RESULT_FILE}"), type=Result)
            in_place = all([await self._put_in_place(log, swap, cleaned) for cleaned in result.cleaned])
        finally:
            if not log.deleted and not log.is_offline:
                _tidy(log)
        if in_place and result.damage is None and not log.deleted:
            directory.cleaner_offsets[key] = result.end_offset
            directory.write_cleaner_offsets()
        return result

    async def _put_in_place(self, log: Log, swap: compaction_swap.Swap, cleaned: CleanedSegment) -> bool:
        """False if the log has changed too much meanwhile; then everything stays as it is."""
        if not swap.still_fits(cleaned):
            return False
        swap.begin(cleaned)
        is_ready = False
        try:
            await self._workers.in_thread(log.disk.sync_directory, log.directory)
            is_ready = swap.still_fits(cleaned)
        finally:
            if not is_ready:
                swap.undo(cleaned)
        if not is_ready:
            return False
        swap.finish(cleaned, self._clock.wall_ms())
        await self._workers.in_thread(log.disk.sync_directory, log.directory)
        return True


def _tidy(log: Log) -> None:
    """Remove what is not needed any more, and what an unfinished run left behind."""
    for name in log.disk.list_directory(log.directory):
        if name.endswith(names.CLEANED) or name in {PLAN_FILE, RESULT_FILE}:
            log.disk.remove(f"{log.directory}/{name}")
