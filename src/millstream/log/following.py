"""Appending as a follower: what the leader sent is written with its offsets and epochs.

Batches go into the file as they came, as many as fit one segment with a single write. Offsets must grow and must not
begin below the end of the log; gaps are what compaction left. One exception (KAFKA-6975): an empty log that starts in
the middle of a leader's batch, after DeleteRecords there, takes the whole batch and keeps its start inside of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log.appending import Appended, note_producer
from millstream.log.batches import split
from millstream.log.cutting import truncate_fully_and_start_at
from millstream.log.rolling import must_roll, roll
from millstream.log.segment import INT32_MAX
from millstream.protocol.errors import CorruptMessage
from millstream.records.batch import NO_TIMESTAMP, BatchHeader, crc_of

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.runtime.ports import Buffer


class UnexpectedOffset(Exception):
    """A follower was sent what it has already: its fetcher has to find where the two logs part."""


def append_as_follower(log: Log, records: Buffer, now_ms: int) -> Appended | None:
    """Append the whole batches of a fetch; None if it held none."""
    if log.failure is not None or log.closed:
        raise log.offline_error()
    batches = _checked(records)
    if not batches:
        return None
    base_offset = batches[0][1].base_offset
    if base_offset < log.end_offset:
        _begin_inside(log, batches[0][1], now_ms)
    position = 0
    for group in _groups(batches, log.config.segment_bytes):
        size = sum(len(batch) for batch, _ in group)
        # Neighbours in the buffer are neighbours in the file: one piece, however many batches it is.
        _append_group(log, group, memoryview(records)[position : position + size], now_ms)
        position += size
    return Appended(base_offset, log.end_offset - 1, NO_TIMESTAMP, log.start_offset, duplicate=False)


def _checked(records: Buffer) -> list[tuple[memoryview, BatchHeader]]:
    """The whole batches of a fetch, which may end within one."""
    batches = split(records, may_end_within=True)
    next_offset = 0
    for batch, header in batches:
        if crc_of(batch, 0, len(batch)) != header.crc:
            raise CorruptMessage(f"the batch at offset {header.base_offset} came with a wrong CRC")
        if header.base_offset < next_offset:
            raise UnexpectedOffset(f"offset {header.base_offset} after {next_offset - 1}")
        next_offset = header.next_offset
    return batches


def _begin_inside(log: Log, first: BatchHeader, now_ms: int) -> None:
    start_offset = log.start_offset
    if start_offset != log.end_offset or first.last_offset < log.end_offset:
        raise UnexpectedOffset(f"the log ends at {log.end_offset}, and was sent offset {first.base_offset}")
    truncate_fully_and_start_at(log, first.base_offset, now_ms)
    log.start_offset = start_offset


def _groups(
    batches: list[tuple[memoryview, BatchHeader]], bytes_max: int
) -> list[list[tuple[memoryview, BatchHeader]]]:
    """Cut the batches into runs that fit a segment, in bytes and in offsets."""
    groups: list[list[tuple[memoryview, BatchHeader]]] = []
    total = 0
    for batch, header in batches:
        far = bool(groups) and header.last_offset - groups[-1][0][1].base_offset > INT32_MAX
        if not groups or far or total + len(batch) > bytes_max:
            groups.append([])
            total = 0
        groups[-1].append((batch, header))
        total += len(batch)
    return groups


def _append_group(log: Log, group: list[tuple[memoryview, BatchHeader]], content: memoryview, now_ms: int) -> None:
    last_offset = group[-1][1].last_offset
    max_timestamp = max(header.max_timestamp for _, header in group)
    if must_roll(log, len(content), last_offset, max_timestamp, now_ms):
        # A base that the last offset is within reach of, if the gap before the batch is too wide for the end's.
        roll(log, max(log.end_offset, last_offset - INT32_MAX), now_ms)
    segment = log.active
    try:
        for _, header in group:
            if header.leader_epoch > log.epochs.latest_epoch:
                log.epochs.assign(header.leader_epoch, header.base_offset)
        segment.file.append(content)
        for batch, header in group:
            # The time of a batch that compaction emptied leads to no record.
            timestamp = header.max_timestamp if header.count else NO_TIMESTAMP
            segment.note(header.last_offset, timestamp, len(batch), log.config)
            log.end_offset = header.next_offset
            if header.producer_id >= 0:
                note_producer(log, header, header.base_offset, batch, 0)
        log.newest = b""
    except OSError as error:
        log.mark_offline(error)
        raise log.offline_error() from error
