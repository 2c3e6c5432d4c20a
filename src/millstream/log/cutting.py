"""Making a log shorter: at its end by truncation, at its beginning by DeleteRecords and retention.

Files go in two steps, as in Kafka: renamed to `.deleted`, so that they no longer count, and removed when
`file.delete.delay.ms` is over, outside of the loop: freeing a gigabyte takes a while. Truncation lets segments go from
the last one down, retention from the first one up: a stop in between leaves a log without a hole.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, NamedTuple

from millstream.log import names
from millstream.log.recovery import drop_snapshots, restore_producers
from millstream.log.rolling import roll
from millstream.log.segment import Segment
from millstream.protocol.errors import OffsetOutOfRange, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.log.log import Log

NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Removal(NamedTuple):
    """Files that no longer count, and when to remove them."""

    due_ms: int
    paths: list[str]


def truncate_to(log: Log, offset: int, now_ms: int) -> None:
    """Drop everything at or above `offset`; a batch that `offset` lies inside of goes whole."""
    if log.failure is not None:
        raise log.offline_error()
    if offset >= log.end_offset:
        # An epoch that began at the end and wrote nothing goes too, or it would be asked about again (KAFKA-10706).
        try:
            log.epochs.truncate_from_end(log.end_offset)
        except OSError as error:
            log.mark_offline(error)
            raise log.offline_error() from error
        return
    if offset < log.segments[0].base_offset:
        truncate_fully_and_start_at(log, offset, now_ms)
        return
    try:
        while log.segments[-1].base_offset > offset:
            _discard(log, log.segments.pop(), now_ms)
        segment = log.segments[-1]
        next_offset = segment.truncate_to(offset, now_ms)
        log.active = segment
        # The next segment may begin here, and then this file is synced no more: what was cut off would come back with
        # the power, and stand before what was written in its place.
        segment.file.sync()
        _ended_at(log, segment.base_offset if next_offset is None else next_offset, now_ms)
        # A segment that came back with the power would leave a hole before it.
        log.disk.sync_directory(log.directory)
    except OSError as error:
        log.mark_offline(error)
        raise log.offline_error() from error


def take_back_what_did_not_fit(log: Log, offset: int, now_ms: int) -> bool:
    """Cut off what an append left behind that failed for want of space, and let the log go on.

    Only where nothing but the last file was touched, and the disk said what was wrong: after any other failure nobody
    knows what it holds.
    """
    failure = log.failure
    if failure is None or failure.errno not in NO_SPACE or not log.active.active:
        return False
    log.failure = None
    try:
        log.active.file.truncate(log.active.size)
        truncate_to(log, offset, now_ms)
    except (OSError, StorageError):
        log.failure = failure
        return False
    return True


def _ended_at(log: Log, end_offset: int, now_ms: int) -> None:
    log.end_offset = end_offset
    log.newest = b""
    log.start_offset = min(log.start_offset, end_offset)
    log.high_watermark = min(log.high_watermark, end_offset)
    log.recovery_point = min(log.recovery_point, end_offset)
    log.unsynced.truncated(end_offset)
    log.epochs.truncate_from_end(end_offset)
    restore_producers(log, end_offset, now_ms)


def truncate_fully_and_start_at(log: Log, offset: int, now_ms: int) -> None:
    """Drop everything and begin anew at `offset`."""
    if log.failure is not None:
        raise log.offline_error()
    try:
        while log.segments:
            _discard(log, log.segments.pop(), now_ms)
        drop_snapshots(log, log.snapshots.copy())
        log.active = Segment.create(log.disk, log.directory, offset, now_ms, log.config.index_interval_bytes)
        log.segments.append(log.active)
        log.unsynced.wrote(names_changed=True)
        log.epochs.clear()
        log.producers.clear()
        log.disk.sync_directory(log.directory)
    except OSError as error:
        log.mark_offline(error)
        raise log.offline_error() from error
    log.start_offset = log.end_offset = log.high_watermark = offset
    log.newest = b""
    log.recovery_point = min(log.recovery_point, offset)
    log.unsynced.truncated(offset)


def advance_start_offset(log: Log, offset: int) -> bool:
    """Let the log begin at `offset`, which may be inside of a batch (KAFKA-6975); False if it did already."""
    if offset > log.high_watermark:
        raise OffsetOutOfRange(f"offset {offset} is above the high watermark, {log.high_watermark}")
    if offset <= log.start_offset:
        return False
    log.start_offset = offset
    log.epochs.truncate_from_start(offset)
    return True


def enforce_retention(log: Log, now_ms: int) -> int:
    """Delete segments at the beginning that nobody may read any more, or that are too old or too many."""
    if log.failure is not None or log.closed:
        return 0
    log.producers.expire(now_ms, log.config.producer_id_expiration_ms)
    count = _drop_first(log, _below_start(log), now_ms)
    if log.config.delete:
        count += _drop_first(log, _over_size(log), now_ms)
        count += _drop_first(log, _too_old(log, now_ms), now_ms)
    return count


def _candidates(log: Log) -> Iterable[tuple[Segment, int]]:
    """Segments that are wholly below the high watermark, with the offset behind each; an empty last one stays."""
    for number, segment in enumerate(log.segments):
        is_last = number + 1 == len(log.segments)
        after = log.end_offset if is_last else log.segments[number + 1].base_offset
        if after > log.high_watermark or (is_last and segment.size == 0):
            return
        yield segment, after


def _below_start(log: Log) -> int:
    count = 0
    for segment, after in _candidates(log):
        if after > log.start_offset or segment is log.active:
            break
        count += 1
    return count


def _over_size(log: Log) -> int:
    limit = log.config.retention_bytes
    excess = log.size_bytes - limit
    count = 0
    if limit >= 0:
        for segment, _ in _candidates(log):
            if excess < segment.size:
                break
            excess -= segment.size
            count += 1
    return count


def _too_old(log: Log, now_ms: int) -> int:
    count = 0
    if log.config.retention_ms >= 0:
        for segment, _ in _candidates(log):
            # A timestamp in the future never gets old here: that is Kafka's rule, and what the topic's owner sees.
            if now_ms - segment.largest_timestamp_or_modified() <= log.config.retention_ms:
                break
            count += 1
    return count


def _drop_first(log: Log, count: int, now_ms: int) -> int:
    if count == 0:
        return 0
    if count == len(log.segments):
        roll(log, log.end_offset, now_ms)
    try:
        # The start moves first: what is going is out of reach, whatever happens to the files.
        start_offset = log.segments[count].base_offset
        if start_offset > log.start_offset:
            log.start_offset = start_offset
            log.epochs.truncate_from_start(start_offset)
        going, log.segments[:count] = log.segments[:count], []
        for segment in going:
            if segment.base_offset in log.snapshots:
                drop_snapshots(log, [segment.base_offset])
            _discard(log, segment, now_ms)
    except OSError as error:
        log.mark_offline(error)
        raise log.offline_error() from error
    return count


def _discard(log: Log, segment: Segment, now_ms: int) -> None:
    """Rename a segment's files out of the way, and close ours; who reads one has opened it on his own."""
    log.opened.forget(segment)
    segment.close()
    paths = []
    # The log goes first: without it the indexes are orphans, which a start removes.
    for suffix in names.SEGMENT_FILES:
        path = segment.file_path(suffix)
        try:
            log.disk.rename(path, path + names.DELETED)
        except FileNotFoundError:
            continue
        paths.append(path + names.DELETED)
    log.unsynced.wrote(names_changed=True)
    log.removals.append(Removal(now_ms + log.config.file_delete_delay_ms, paths))


def remove_due(log: Log, now_ms: int) -> int | None:
    """May run in a thread while the log goes on: the list is only added to and taken from."""
    for removal in log.removals.copy():
        if removal.due_ms <= now_ms:
            for path in removal.paths:
                if log.disk.exists(path):
                    log.disk.remove(path)
            log.removals.remove(removal)
    return min((removal.due_ms for removal in log.removals), default=None)


def delete(log: Log, unique: str) -> str:
    """Rename the folder to `<topic>-<partition>.<unique>-delete` and forget its files; returns the new path."""
    log.closed = log.deleted = True
    log.mark_offline(FileNotFoundError("the partition was deleted"))
    for segment in log.segments:
        segment.close()
    parent, _, name = log.directory.rpartition("/")
    parsed = names.parse_partition_directory(name)
    assert parsed is not None
    target = f"{parent}/{names.marked_directory(*parsed, unique, names.DELETE_DIRECTORY)}"
    log.disk.rename(log.directory, target)
    log.disk.sync_directory(parent)
    return target
