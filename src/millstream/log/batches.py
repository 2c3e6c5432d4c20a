"""Walking over the batches of a segment's file, header by header, without looking inside them.

Reads are small and few: the caller comes with a position from an index, so what it looks for is usually within the
next `index.interval.bytes`. A header that cannot be stops the walk with an error: skipping over damage would make
what lies behind it look like the next record.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from millstream.protocol.errors import CorruptMessage
from millstream.records.batch import HEADER, HEADER_BYTES, LENGTH_END, MAGIC, BatchHeader, read_header

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.runtime.ports import Buffer, File

SMALLEST_LENGTH = HEADER_BYTES - LENGTH_END
_CHUNK_BYTES = 8192
_PLACE = Struct(">qi4xb6xi")  # base offset, length, magic and last offset delta of a header


def headers_from(
    file: File, position: int, end: int, chunk_bytes: int = _CHUNK_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of every batch from `position`, which must be the beginning of one, to `end`."""
    chunk, chunk_at = b"", position
    while position < end:
        within = position - chunk_at
        if within + HEADER_BYTES > len(chunk):
            chunk, chunk_at, within = file.read(position, min(chunk_bytes, end - position)), position, 0
            if len(chunk) < HEADER_BYTES:
                raise CorruptMessage(f"the batch at position {position} ends in its header")
        header: BatchHeader = tuple.__new__(BatchHeader, HEADER.unpack_from(chunk, within))
        size = header[1] + LENGTH_END
        if header[1] < SMALLEST_LENGTH or header[3] != MAGIC or header[6] < 0 or position + size > end:
            raise CorruptMessage(f"there is no whole batch at position {position}")
        yield position, header
        position += size


def find_batch(file: File, position: int, end: int, offset: int) -> int | None:
    """Where the first batch begins, from `position` on, that reaches `offset`; None if none before `end` does."""
    while position < end:
        # One read usually holds all there is to look at: it is a little more than lies between two index entries.
        chunk = file.read(position, min(_CHUNK_BYTES, end - position))
        within, last = 0, len(chunk) - HEADER_BYTES
        if last < 0:
            raise CorruptMessage(f"the batch at position {position} ends in its header")
        while within <= last:
            base_offset, length, magic, last_offset_delta = _PLACE.unpack_from(chunk, within)
            if length < SMALLEST_LENGTH or magic != MAGIC or position + within + LENGTH_END + length > end:
                raise CorruptMessage(f"there is no whole batch at position {position + within}")
            if base_offset + last_offset_delta >= offset:
                return position + within
            within += LENGTH_END + length
        position += within
    return None


def split(records: Buffer, *, may_end_within: bool = False) -> list[tuple[memoryview, BatchHeader]]:
    """The batches of a buffer that holds nothing else, each with its header."""
    view = memoryview(records)
    found = []
    position = 0
    while position < len(view):
        left = len(view) - position
        if left < HEADER_BYTES:
            if may_end_within:
                break
            raise CorruptMessage("the last batch ends in its header")
        header = read_header(view, position)
        if header.batch_length < SMALLEST_LENGTH or header.magic != MAGIC or header.last_offset_delta < 0:
            raise CorruptMessage(f"there is no batch at byte {position}")
        if header.size > left:
            if may_end_within:
                break
            raise CorruptMessage(f"the batch at byte {position} is not whole")
        found.append((view[position : position + header.size], header))
        position += header.size
    return found
