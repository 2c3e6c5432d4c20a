"""Finding offsets by time, and the aborted transactions of a stretch of the log.

A segment knows its largest timestamp, so the first segment that reaches a timestamp is found without its file; its
time index gives a place to begin, and the batches from there are looked into. Timestamps need not grow with offsets:
the answer is the first record, in offset order, that is not older.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.log.batches import headers_from
from millstream.protocol.errors import CorruptMessage, RecordTooLarge
from millstream.records.batch import NO_TIMESTAMP
from millstream.records.reading import decode_records, find_timestamp

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.log.segment import Segment


class FoundOffset(NamedTuple):
    """An answer of ListOffsets."""

    offset: int
    timestamp: int
    leader_epoch: int


def earliest(log: Log) -> FoundOffset:
    epoch = log.epochs.epoch_of(log.start_offset)
    return FoundOffset(log.start_offset, NO_TIMESTAMP, -1 if epoch is None else epoch)


def latest(log: Log, upto_offset: int) -> FoundOffset:
    """The end of what the caller may see: high watermark, last stable offset or end of the log."""
    return FoundOffset(upto_offset, NO_TIMESTAMP, log.epochs.latest_epoch)


def offset_for_timestamp(log: Log, timestamp: int) -> FoundOffset | None:
    for number, segment in enumerate(log.segments):
        if segment.size == 0 or segment.largest[0] < timestamp:
            continue
        after = log.segments[number + 1].base_offset if number + 1 < len(log.segments) else log.end_offset
        if after > log.start_offset and (found := _find_in(log, segment, timestamp)) is not None:
            return found
    return None


def _find_in(log: Log, segment: Segment, timestamp: int) -> FoundOffset | None:
    log.opened.touch(segment)
    begin = max(segment.offset_before(timestamp), log.start_offset)
    for position, header in headers_from(segment.file, segment.position_before(begin), segment.size):
        if header.max_timestamp < timestamp or header.last_offset < log.start_offset:
            continue
        try:
            found = _find_in_batch(log, segment.file.read(position, header.size), timestamp)
        except (CorruptMessage, RecordTooLarge):
            # It lies inside (validation may be off). Its header is all that can be told of it.
            found = max(header.base_offset, log.start_offset), header.max_timestamp
        if found is not None:
            return FoundOffset(*found, header.leader_epoch)
    return None


def _find_in_batch(log: Log, batch: bytes, timestamp: int) -> tuple[int, int] | None:
    limits = log.config.decompression_limits
    found = find_timestamp(batch, timestamp, limits=limits)
    if found is None or found[0] >= log.start_offset:
        return found
    # The log starts inside of this batch (DeleteRecords): only its later records count.
    for record in decode_records(batch, limits=limits):
        if record.offset >= log.start_offset and record.timestamp >= timestamp:
            return record.offset, record.timestamp
    return None


def offset_of_max_timestamp(log: Log) -> FoundOffset | None:
    """The first record of the whole log that has its largest timestamp (KAFKA-16310)."""
    newest: Segment | None = None
    for segment in log.segments:
        if segment.size and (newest is None or segment.largest[0] > newest.largest[0]):
            newest = segment
    if newest is None or newest.largest[0] < 0:
        return None
    return _find_in(log, newest, newest.largest[0])


def aborted_transactions(log: Log, start_offset: int, upto_offset: int) -> list[tuple[int, int]]:
    """Aborted transactions with records in [start_offset, upto_offset), by first offset."""
    found = []
    for number, segment in enumerate(log.segments):
        is_last = number + 1 == len(log.segments)
        if not is_last and log.segments[number + 1].base_offset <= start_offset:
            continue
        done = False
        for aborted in segment.txn_index.entries:
            if aborted.last_offset >= start_offset and aborted.first_offset < upto_offset:
                found.append((aborted.producer_id, aborted.first_offset))
            # What was aborted later began at or above this.
            if aborted.last_stable_offset >= upto_offset:
                done = True
                break
        if done:
            break
    found.sort(key=lambda entry: entry[1])
    return found
