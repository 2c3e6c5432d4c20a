"""Scanning after an unclean stop, and bringing the producers back.

A segment is read in large chunks and each batch's CRC is computed once; what is read also rebuilds the indexes, enters
unknown epochs and brings producers and aborted transactions up to date. Producers start from the latest snapshot that
reads well; the headers of batches between it and the place wanted are replayed. There is a snapshot at the beginning
of every segment, so that is rarely more than one segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.log import names, snapshots
from millstream.log.appending import end_transaction
from millstream.log.batches import headers_from
from millstream.records.batch import CONTROL_BIT
from millstream.records.scanning import scan_batches

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.log.segment import Segment
    from millstream.records.batch import BatchHeader
    from millstream.runtime.ports import Buffer

_CHUNK_BYTES = 4 << 20


class Recovered(NamedTuple):
    """What is left of a segment."""

    next_offset: int
    cut_bytes: int


def recover_segment(log: Log, segment: Segment, now_ms: int) -> Recovered:
    """Keep the whole, valid batches; leaves the segment active, with new indexes, and producers at its end."""
    total = segment.size
    segment.begin_scan(now_ms)
    next_offset = segment.base_offset
    position = indexed_at = 0
    wanted_bytes = _CHUNK_BYTES
    while position < total:
        chunk = segment.file.read(position, min(wanted_bytes, total - position))
        scan = scan_batches(chunk, next_offset=next_offset)
        for at, header in scan.batches:
            if not segment.fits(header.last_offset):
                return _cut(segment, next_offset, position + at, total)
            indexed_at = segment.index_scanned(position + at, header, indexed_at)
            if header.leader_epoch > log.epochs.latest_epoch:
                log.epochs.assign(header.leader_epoch, header.base_offset, save=False)
            if header.producer_id >= 0:
                _replay(log, segment, header, chunk, at)
            next_offset = header.next_offset
        needed_bytes = len(chunk) - scan.end + scan.missing_bytes
        position += scan.end
        if scan.corruption is not None or (scan.missing_bytes and position + needed_bytes > total):
            break
        wanted_bytes = max(_CHUNK_BYTES, needed_bytes)
    return _cut(segment, next_offset, position, total)


def _cut(segment: Segment, next_offset: int, position: int, total: int) -> Recovered:
    if position < total:
        segment.file.truncate(position)
    segment.end_scan(position)
    return Recovered(next_offset, total - position)


def _replay(log: Log, index_in: Segment | None, header: BatchHeader, buffer: Buffer, position: int) -> None:
    """Apply a producer's batch as when it was appended."""
    if header.attributes & CONTROL_BIT:
        aborted = end_transaction(log.producers, header, header.base_offset, buffer, position)
        if aborted is not None and index_in is not None:
            index_in.txn_index.append(aborted)
            log.unsynced.wrote(index_in.txn_index.path, names_changed=True)
        return
    log.producers.apply(header, header.base_offset)


def restore_producers(log: Log, upto_offset: int, now_ms: int, *, trust_absence: bool = False) -> None:
    """Set the producers to what they were at `upto_offset`.

    `trust_absence`: where there is no snapshot at all after a clean stop, there were no producers (a log of one segment
    that never had any gets no snapshot), so nothing is read.
    """
    drop_snapshots(log, [offset for offset in log.snapshots if offset > upto_offset])
    log.producers.clear()
    # Also what is below the start of the log, as long as it is there: DeleteRecords hides records, not their producer.
    offset = 0
    for candidate in reversed(log.snapshots.copy()):
        path = _path(log, candidate)
        try:
            entries = snapshots.decode(log.disk.read_file(path))
        except snapshots.CorruptSnapshot:
            drop_snapshots(log, [candidate])
            continue
        log.producers.restore(entries, now_ms, log.config.producer_id_expiration_ms)
        offset = candidate
        break
    else:
        if trust_absence:
            return
    if offset < upto_offset:
        _replay_between(log, offset, upto_offset)


def _replay_between(log: Log, offset: int, upto_offset: int) -> None:
    for number, segment in enumerate(log.segments):
        after = log.segments[number + 1].base_offset if number + 1 < len(log.segments) else None
        if (after is not None and after <= offset) or segment.base_offset >= upto_offset or segment.size == 0:
            continue
        start = segment.position_before(offset) if offset > segment.base_offset else 0
        for position, header in headers_from(segment.file, start, segment.size, chunk_bytes=1 << 20):
            if header.base_offset >= upto_offset:
                return
            if header.producer_id < 0 or header.last_offset < offset:
                continue
            batch = segment.file.read(position, header.size) if header.attributes & CONTROL_BIT else b""
            _replay(log, None, header, batch, 0)


def drop_snapshots(log: Log, offsets: list[int]) -> None:
    for offset in offsets:
        log.disk.remove(_path(log, offset))
        log.snapshots.remove(offset)


def _path(log: Log, offset: int) -> str:
    return f"{log.directory}/{names.of_offset(offset, names.SNAPSHOT)}"
