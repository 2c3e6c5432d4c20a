"""Closing one segment and beginning the next; closing the log.

A roll leaves the old segment as Kafka does: indexes trimmed and whole, a producer snapshot named after the new base
offset. Nothing is synced here; the old files become targets of the next flush, which moves the recovery point past
them. New segments begin at the end of the log, so between two segments there is a gap only where compaction made it
(or where a follower was given an offset too far ahead for the index's four bytes, KAFKA-6264).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from crc32c import crc32c

from millstream.log import names, snapshots
from millstream.log.segment import INT32_MAX, Segment

if TYPE_CHECKING:
    from millstream.log.log import Log


def must_roll(log: Log, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> bool:
    """Whether a batch has to go to a new segment."""
    segment = log.active
    config = log.config
    if segment.size + size > config.segment_bytes or last_offset - segment.base_offset > INT32_MAX or segment.full:
        return True
    if segment.size == 0:
        return False
    first = segment.first_timestamp
    if first is None:
        first = segment.rolling_timestamp()
    # The age of a segment counts in its records' time, so that old data copied in rolls as it did originally.
    waited_ms = max_timestamp - first if first is not None and first >= 0 else now_ms - segment.created_ms
    limit_ms = config.rolled_after_ms
    return waited_ms > (limit_ms - _jitter_ms(log) if config.segment_jitter_ms else limit_ms)


def _jitter_ms(log: Log) -> int:
    """Spreads the rolls of partitions that began together; the same for the same segment at every start."""
    bound = min(log.config.segment_jitter_ms, log.config.segment_ms)
    return int(crc32c(log.active.path.encode())) % bound if bound > 0 else 0


def roll(log: Log, base_offset: int, now_ms: int) -> Segment:
    """Begin a segment at `base_offset`, which is the end of the log or above it."""
    if log.failure is not None:
        raise log.offline_error()
    old = log.active
    if old.base_offset == base_offset:
        # Nothing was written to it: it serves as the new one (KAFKA-6388).
        assert old.size == 0
        old.created_ms = now_ms
        return old
    try:
        old.finish()
        write_snapshot(log, base_offset)
        segment = Segment.create(log.disk, log.directory, base_offset, now_ms, log.config.index_interval_bytes)
    except OSError as error:
        log.mark_offline(error)
        raise log.offline_error() from error
    log.unsynced.wrote(
        old.offset_index.path,
        old.time_index.path,
        *([old.txn_index.path] if old.txn_index.has_file else []),
        names_changed=True,
    )
    log.opened.touch(old)
    log.segments.append(segment)
    log.active = segment
    # Compaction may change what is in the old one.
    log.newest = b""
    return segment


def write_snapshot(log: Log, offset: int) -> None:
    """Keep the producers as they are at `offset`, the end of the log, unless that was done before."""
    if log.snapshots and log.snapshots[-1] >= offset:
        return
    path = f"{log.directory}/{names.of_offset(offset, names.SNAPSHOT)}"
    file = log.disk.create(path)
    try:
        file.append(snapshots.encode(log.producers.snapshot()))
    finally:
        file.close()
    log.snapshots.append(offset)
    log.unsynced.wrote(path, names_changed=True)


def close(log: Log) -> None:
    """Stop in order. A log that is offline is only let go of: the next start recovers it."""
    if log.closed:
        return
    log.closed = True
    try:
        if log.failure is None:
            write_for_close(log)
            log.flush()
    finally:
        for segment in log.segments:
            segment.close()


def write_for_close(log: Log) -> None:
    """Write what a clean stop leaves behind: whole indexes, and the producers at the end of the log."""
    active = log.active
    try:
        if active.save_indexes():
            log.unsynced.wrote(active.offset_index.path, active.time_index.path, names_changed=True)
        # A log that never held anything needs no snapshot: its absence says that there are no producers.
        if log.end_offset > log.segments[0].base_offset or len(log.producers):
            write_snapshot(log, log.end_offset)
    except OSError as error:
        log.mark_offline(error)
        raise log.offline_error() from error
