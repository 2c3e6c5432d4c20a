"""Walking a log file batch by batch: what recovery trusts of it, and where it stops trusting.

A chunk of the file goes in; out come the headers of its whole, valid batches with their positions, and why it ended.
Only headers and CRCs are looked at. A batch that lies inside but has its CRC is whole: it was acknowledged like that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from millstream.records.batch import ATTRIBUTES_AT, HEADER, HEADER_BYTES, LENGTH_END, MAGIC, BatchHeader

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview

BATCH_BYTES_MAX: Final = (1 << 31) - 1
_OFFSET_MAX: Final = (1 << 63) - 1


class Scan(NamedTuple):
    """What a chunk of a log file holds."""

    batches: list[tuple[int, BatchHeader]]
    """Position and header of every whole, valid batch."""
    end: int
    """Position after the last of them."""
    missing_bytes: int
    """If the chunk ends within a batch: how many more bytes are known to be needed; the next chunk starts at `end`."""
    corruption: str | None
    """Why the bytes at `end` are not a batch; None if the chunk ended, at a batch or within one."""


def scan_batches(
    buffer: Buffer,
    position: int = 0,
    limit: int | None = None,
    *,
    next_offset: int = 0,
    batch_bytes_max: int = BATCH_BYTES_MAX,
) -> Scan:
    """The batches of buffer[position:limit]; the first may not have an offset below `next_offset`, and offsets grow."""
    batches: list[tuple[int, BatchHeader]] = []
    with memoryview(buffer) as view:
        limit = len(view) if limit is None else min(limit, len(view))
        while position < limit:
            if limit - position < HEADER_BYTES:
                return Scan(batches, position, HEADER_BYTES - (limit - position), None)
            header = tuple.__new__(BatchHeader, HEADER.unpack_from(view, position))
            size = header.batch_length + LENGTH_END
            corruption = _implausible(header, size, next_offset, batch_bytes_max)
            if corruption is not None:
                return Scan(batches, position, 0, corruption)
            if size > limit - position:
                return Scan(batches, position, size - (limit - position), None)
            with view[position + ATTRIBUTES_AT : position + size] as covered:
                crc = crc32c(covered)
            if crc != header.crc:
                return Scan(batches, position, 0, f"CRC {crc:#010x} where the header says {header.crc:#010x}")
            batches.append((position, header))
            next_offset = header.base_offset + header.last_offset_delta + 1
            position += size
    return Scan(batches, position, 0, None)


def _implausible(header: BatchHeader, size: int, next_offset: int, batch_bytes_max: int) -> str | None:
    """Why this cannot be the header of the next batch, from the header alone."""
    if header.magic != MAGIC:
        return f"magic {header.magic}"
    if not HEADER_BYTES <= size <= batch_bytes_max:
        return f"a length of {header.batch_length} bytes"
    if header.base_offset < next_offset:
        return f"offset {header.base_offset} where {next_offset} or more was due"
    if header.last_offset_delta < 0 or header.base_offset > _OFFSET_MAX - 1 - header.last_offset_delta:
        return f"a last offset delta of {header.last_offset_delta}"
    if not 0 <= header.count <= header.last_offset_delta + 1:
        return f"{header.count} records in {header.last_offset_delta + 1} offsets"
    return None
