"""Compaction itself, as the child process does it: two passes over closed segments, after Kafka's LogCleaner.

The first pass notes the newest offset of every key in the dirty part, until that part ends or memory does. The second
copies all segments up to there, clean ones too, leaving out the records that have a newer one; small neighbours become
one segment. What is made stands under `.cleaned`, synced; the broker puts it in place.

What stays although its records are gone, as an empty batch: the last batch of a producer that is still active, which
carries the sequence (KAFKA-8335), and the last batch of the round, which carries the offset (KAFKA-9065).

Nothing is believed of a batch's inside. One that is not what its header says, which header-only validation lets into a
log, is copied as it is; since it may hold an old value of any key, tombstones behind it are then kept for ever. A
segment whose batches or CRCs are broken ends the compaction, and nothing has happened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log import names
from millstream.log.compaction_keys import NewestOffsets
from millstream.log.compaction_plan import CleanedSegment, Plan, PlannedSegment, Result
from millstream.log.compaction_transactions import TransactionsSeen
from millstream.log.compaction_writer import SegmentWriter
from millstream.protocol.errors import CorruptMessage
from millstream.records import _walker
from millstream.records.batch import BatchHeader, read_header
from millstream.records.building import empty_batch
from millstream.records.reading import payload_of, whole_header
from millstream.records.rewriting import rewrite_batch
from millstream.records.scanning import scan_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.runtime.ports import Disk

_CHUNK_BYTES = 4 << 20
_INT32_MAX = (1 << 31) - 1


class Damaged(Exception):
    """A segment that cannot be walked."""


def compact(disk: Disk, plan: Plan) -> Result:
    """Make the cleaned segments that the plan asks for."""
    cleaner = _Cleaner(disk, plan)
    try:
        newest = cleaner.find_newest()
        cleaned = [cleaner.clean(group, newest) for group in group_segments(plan, newest.latest_offset + 1)]
    except Damaged as damage:
        return Result(cleaned=[], end_offset=plan.first_dirty_offset, opaque_batches=0, damage=str(damage))
    return Result(cleaned=cleaned, end_offset=newest.latest_offset + 1, opaque_batches=cleaner.opaque_batches)


def group_segments(plan: Plan, end_offset: int) -> list[list[PlannedSegment]]:
    """Segments below `end_offset`, in groups that fit one segment by size, by index and by relative offset."""
    groups: list[list[PlannedSegment]] = []
    size = index_bytes = 0
    for segment in plan.segments:
        if segment.base_offset >= end_offset:
            break
        size += segment.size
        index_bytes += segment.index_bytes
        fits = size <= plan.segment_bytes and index_bytes <= plan.segment_index_bytes
        if groups and fits and segment.after - 1 - groups[-1][0].base_offset <= _INT32_MAX:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size, index_bytes = segment.size, segment.index_bytes
    return groups


class _Cleaner:
    """One run over one log."""

    def __init__(self, disk: Disk, plan: Plan) -> None:
        self._disk = disk
        self._plan = plan
        self._last_of = {each.producer_id: each for each in plan.producers}
        self._transactions = TransactionsSeen(plan.aborted)
        self.opaque_batches = 0

    # First pass

    def find_newest(self) -> NewestOffsets:
        plan = self._plan
        newest = NewestOffsets(plan.keys_max, plan.first_dirty_offset)
        transactions = TransactionsSeen(plan.aborted)
        for segment in plan.segments:
            if segment.after <= plan.first_dirty_offset:
                continue
            for header, chunk, position in self._batches(segment):
                if header.last_offset < plan.first_dirty_offset:
                    continue
                if header.is_control:
                    transactions.marker_ends_nothing(header, chunk, position)
                elif not transactions.is_aborted(header) and not self._note_keys(header, chunk, position, newest):
                    return newest
                newest.reached(header.last_offset)
            newest.reached(segment.after - 1)
        return newest

    def _note_keys(self, header: BatchHeader, chunk: bytes, position: int, newest: NewestOffsets) -> bool:
        """False if memory is full."""
        try:
            _, keys = _open(header, chunk, position)
        except CorruptMessage:
            return True
        for delta, key, _, _ in keys:
            offset = header.base_offset + delta
            if key is not None and offset >= self._plan.first_dirty_offset and not newest.put(key, offset):
                return False
        return True

    # Second pass

    def clean(self, group: list[PlannedSegment], newest: NewestOffsets) -> CleanedSegment:
        plan = self._plan
        base_offset = group[0].base_offset
        writer = SegmentWriter(self._disk, plan.directory, base_offset, plan.index_interval_bytes)
        try:
            for segment in group:
                for header, chunk, position in self._batches(segment):
                    kept = self._clean_batch(header, chunk, position, newest)
                    if kept is not None:
                        writer.append(kept, read_header(kept))
            aborted, self._transactions.kept = self._transactions.kept, []
            writer.finish(aborted)
        finally:
            writer.close()
        if writer.size > _INT32_MAX:
            raise Damaged(f"the segments from {base_offset} on do not fit into one file")
        return CleanedSegment(base_offset, writer.size, [segment.base_offset for segment in group], bool(aborted))

    def _clean_batch(
        self, header: BatchHeader, chunk: bytes, position: int, newest: NewestOffsets
    ) -> bytes | bytearray | memoryview | None:
        """What is left of a batch: itself, fewer records, an empty batch, or nothing."""
        plan = self._plan
        stored = memoryview(chunk)[position : position + header.size]
        horizon_ms = header.delete_horizon_ms
        keep_empty = header.next_offset == plan.upper_bound_offset or self._is_last_of_producer(header)
        if header.is_control:
            ends_nothing = self._transactions.marker_ends_nothing(header, chunk, position)
            if not ends_nothing:
                return stored
            if header.count and horizon_ms is None:
                return rewrite_batch(
                    header,
                    payload_of(chunk, position, header),
                    b"\1" * header.count,
                    delete_horizon_ms=plan.now_ms + plan.delete_retention_ms,
                )
            if header.count and horizon_ms is not None and plan.now_ms < horizon_ms:
                return stored
            return empty_batch(header) if keep_empty else None
        if self._transactions.is_aborted(header):
            return empty_batch(header) if keep_empty else None
        if header.count == 0:
            return stored if keep_empty else None
        try:
            return self._clean_records(header, chunk, position, newest, keep_empty=keep_empty)
        except CorruptMessage:
            self.opaque_batches += 1
            return stored

    def _clean_records(
        self, header: BatchHeader, chunk: bytes, position: int, newest: NewestOffsets, *, keep_empty: bool
    ) -> bytes | bytearray | memoryview | None:
        plan = self._plan
        payload, keys = _open(header, chunk, position)
        horizon_ms = header.delete_horizon_ms
        # Behind a batch that cannot be read, a tombstone may be all that hides an old value.
        keeps_tombstones = horizon_ms is None or plan.now_ms < horizon_ms or self.opaque_batches > 0
        kept = bytearray(len(keys))
        has_tombstone = False
        for index, (delta, key, is_tombstone, _) in enumerate(keys):
            offset = header.base_offset + delta
            is_newest = key is not None and not newest.replaced(key, offset)
            if offset > newest.latest_offset or (is_newest and (keeps_tombstones or not is_tombstone)):
                kept[index] = 1
                has_tombstone = has_tombstone or is_tombstone
        if not any(kept):
            return empty_batch(header) if keep_empty else None
        new_horizon_ms = plan.now_ms + plan.delete_retention_ms if has_tombstone and horizon_ms is None else None
        if all(kept) and new_horizon_ms is None:
            return memoryview(chunk)[position : position + header.size]
        return rewrite_batch(header, payload, bytes(kept), delete_horizon_ms=new_horizon_ms)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._last_of.get(header.producer_id)
        if last is None:
            return False
        if last.last_offset >= 0:
            return header.last_offset == last.last_offset
        return header.is_control and header.producer_epoch == last.epoch

    # Reading

    def _batches(self, segment: PlannedSegment) -> Iterator[tuple[BatchHeader, bytes, int]]:
        """(header, buffer, position in it) of every batch, each with its CRC checked."""
        path = f"{self._plan.directory}/{names.of_offset(segment.base_offset, names.LOG)}"
        file = self._disk.open(path)
        try:
            position, next_offset, wanted_bytes = 0, segment.base_offset, _CHUNK_BYTES
            while position < segment.size:
                chunk = file.read(position, min(wanted_bytes, segment.size - position))
                scan = scan_batches(chunk, next_offset=next_offset)
                for at, header in scan.batches:
                    if header.last_offset >= segment.after:
                        raise Damaged(f"{path}: offset {header.last_offset} belongs to the next segment")
                    next_offset = header.next_offset
                    yield header, chunk, at
                needed_bytes = len(chunk) - scan.end + scan.missing_bytes
                position += scan.end
                if scan.corruption is not None or (scan.missing_bytes and position + needed_bytes > segment.size):
                    raise Damaged(f"{path}: at byte {position} {scan.corruption or 'the file ends within a batch'}")
                wanted_bytes = max(_CHUNK_BYTES, needed_bytes)
        finally:
            file.close()


def _open(header: BatchHeader, chunk: bytes, position: int) -> tuple[bytes, list[tuple[int, bytes | None, bool, int]]]:
    """The records of a batch and what compaction asks of each; CorruptMessage if the header lies about them."""
    whole_header(chunk, position)
    payload = payload_of(chunk, position, header)
    try:
        keys = _walker.keys(payload, header.count)
    except _walker.BrokenRecords as error:
        raise CorruptMessage(f"the batch at offset {header.base_offset} is broken: {error}") from error
    if keys and keys[-1][0] > header.last_offset_delta:
        raise CorruptMessage(f"the batch at offset {header.base_offset} holds a record behind its last offset")
    return payload, keys
