"""Opening a log: what a folder holds, put right by Kafka's rules where its last owner did not stop in order.

1. Files of a replacement or removal that did not finish go, or are finished (`interrupted`).
2. After an unclean stop every segment from the recovery point on is scanned: batches up to the first that is not
   whole and valid count, the rest is cut off, and later segments go with it. Indexes are rebuilt on the way.
3. Leader epochs and producers are brought in line with what is left: producers from the latest snapshot that reads
   well, and the batches behind it.

A clean stop needs none of that: one listing, the last segment's two indexes and its tail, the epochs, one snapshot.
Indexes of closed segments are looked at when somebody reads them, and rebuilt then if they cannot be right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log import interrupted, names, partition_metadata
from millstream.log.batches import headers_from
from millstream.log.epochs import CorruptEpochs, EpochStart, LeaderEpochs
from millstream.log.epochs import parse as parse_epochs
from millstream.log.indexes import CorruptIndex
from millstream.log.recovery import drop_snapshots, recover_segment, restore_producers
from millstream.log.rolling import write_snapshot
from millstream.log.segment import INT32_MAX, Segment
from millstream.protocol.errors import CorruptMessage

if TYPE_CHECKING:
    from millstream.log.log import Log


def load(log: Log, *, clean: bool, recovery_point: int, log_start_offset: int, now_ms: int) -> None:
    """Fill a new Log from its folder."""
    disk, directory = log.disk, log.directory
    files = disk.list_directory(directory)
    if not files:
        disk.make_directory(directory)
        log.unsynced.made_directory()
    files = interrupted.settle(disk, directory, files)
    present = frozenset(files)
    partition_metadata.ensure(log, exists=names.PARTITION_METADATA in present)
    _load_segments(log, files, present)
    _load_snapshots(log, files)
    epochs_are_whole = _load_epochs(log, exists=names.LEADER_EPOCHS in present)
    log.start_offset = log_start_offset
    if not clean:
        _recover(log, recovery_point, now_ms)
    producers_known = _settle_end(log, now_ms) or not clean
    log.active = log.segments[-1]
    log.start_offset = max(log_start_offset, log.segments[0].base_offset)
    log.high_watermark = log.start_offset
    log.recovery_point = log.end_offset if clean else min(recovery_point, log.end_offset)
    if not producers_known:
        restore_producers(log, log.end_offset, now_ms, trust_absence=True)
    if not epochs_are_whole:
        _find_epochs(log)
    # An epoch that began at the very end, and wrote nothing, stays (KAFKA-7415).
    log.epochs.truncate_from_end(log.end_offset + 1)
    log.epochs.truncate_from_start(log.start_offset)
    log.epochs.save_if_changed()


def _load_segments(log: Log, files: list[str], present: frozenset[str]) -> None:
    for name in files:
        base_offset = names.offset_of(name)
        if base_offset is None:
            continue
        if name.endswith(names.LOG):
            log.segments.append(
                Segment(
                    log.disk,
                    log.directory,
                    base_offset,
                    size=log.disk.size(f"{log.directory}/{name}"),
                    has_txn_index=names.of_offset(base_offset, names.TXN_INDEX) in present,
                    index_interval_bytes=log.config.index_interval_bytes,
                )
            )
        elif name.endswith(names.SEGMENT_FILES) and names.of_offset(base_offset, names.LOG) not in present:
            log.disk.remove(f"{log.directory}/{name}")


def _load_snapshots(log: Log, files: list[str]) -> None:
    """Note the snapshots worth keeping: those where a segment begins, and the newest."""
    found = [names.offset_of(name) for name in files if name.endswith(names.SNAPSHOT)]
    log.snapshots = sorted(offset for offset in found if offset is not None)
    if len(log.snapshots) > 1:
        bases = {segment.base_offset for segment in log.segments}
        drop_snapshots(log, [offset for offset in log.snapshots[:-1] if offset not in bases])


def _recover(log: Log, recovery_point: int, now_ms: int) -> None:
    """Scan what may not have reached the disk; what comes behind damage goes."""
    segments = log.segments
    # The segment that holds the recovery point is scanned, too; beyond the end (KAFKA-10101) it is the last one.
    first = max((number for number, segment in enumerate(segments) if segment.base_offset <= recovery_point), default=0)
    restore_producers(log, segments[first].base_offset if segments else log.start_offset, now_ms)
    for number in range(first, len(segments)):
        segment = segments[number]
        found = recover_segment(log, segment, now_ms)
        log.end_offset = found.next_offset
        if number + 1 == len(segments):
            break
        if found.cut_bytes or _lost_its_end(log, found.next_offset, segments[number + 1]):
            for lost in reversed(segments[number + 1 :]):
                interrupted.remove_segment(log.disk, lost)
            del segments[number + 1 :]
            break
        segment.finish()
        write_snapshot(log, segments[number + 1].base_offset)
        log.opened.touch(segment)
        log.unsynced.wrote(segment.offset_index.path, segment.time_index.path)
    log.unsynced.wrote(names_changed=True)


def _lost_its_end(log: Log, next_offset: int, after: Segment) -> bool:
    """Whether batches are missing between a segment past the recovery point and the next.

    A segment begins where the one before it ended, unless compaction thinned that out, or a gap was too wide for an
    index. Otherwise the file lost whole batches at its end to a loss of power, and what follows must go with them, or
    the log would have a hole that nobody notices.
    """
    if log.config.compact or next_offset >= after.base_offset:
        return False
    try:
        for _, header in headers_from(after.file, 0, after.size):
            return header.last_offset - next_offset <= INT32_MAX
    except CorruptMessage:
        pass
    return True


def _settle_end(log: Log, now_ms: int) -> bool:
    """Make the last segment the active one, or begin one; says whether the producers came with that."""
    segments = log.segments
    if segments:
        scanned = not segments[-1].active and _activate(log, segments[-1], now_ms)
        if log.end_offset >= log.start_offset:
            return scanned
        # A start above the end: everything was deleted, and the new beginning did not reach the disk.
        for segment in reversed(segments):
            interrupted.remove_segment(log.disk, segment)
        segments.clear()
        drop_snapshots(log, log.snapshots.copy())
        log.producers.clear()
    segments.append(Segment.create(log.disk, log.directory, log.start_offset, now_ms, log.config.index_interval_bytes))
    log.end_offset = log.start_offset
    log.unsynced.wrote(names_changed=True)
    return True


def _activate(log: Log, segment: Segment, now_ms: int) -> bool:
    """Trust the last segment, as a clean stop allows, or scan it if that does not hold; says whether it was scanned."""
    try:
        next_offset = segment.activate(now_ms)
    except (CorruptIndex, CorruptMessage):
        restore_producers(log, segment.base_offset, now_ms)
        log.end_offset = recover_segment(log, segment, now_ms).next_offset
        return True
    log.end_offset = segment.base_offset if next_offset is None else next_offset
    return False


def _load_epochs(log: Log, *, exists: bool) -> bool:
    """False if the file was there and could not be read to its end."""
    entries: list[EpochStart] = []
    whole = True
    if exists:
        try:
            entries = parse_epochs(log.disk.read_file(f"{log.directory}/{names.LEADER_EPOCHS}"))
        except CorruptEpochs:
            whole = False
    log.epochs = LeaderEpochs(log.disk, log.directory, log.unsynced, entries)
    return whole


def _find_epochs(log: Log) -> None:
    """Find the epochs in the batches themselves."""
    log.epochs = LeaderEpochs(log.disk, log.directory, log.unsynced, [])
    for segment in log.segments:
        for _, header in headers_from(segment.file, 0, segment.size, chunk_bytes=1 << 20):
            if header.leader_epoch > log.epochs.latest_epoch:
                log.epochs.assign(header.leader_epoch, header.base_offset, save=False)
    log.epochs.save()
