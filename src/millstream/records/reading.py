"""Whole batches for those who want to see their records: clients, `log dump`, look-ups by time, compaction.

A batch comes here from our own log or from a peer, with header-only validation perhaps unseen inside. So nothing is
believed: whatever does not add up raises CorruptMessage, and never anything else.
"""

from __future__ import annotations

import struct
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from millstream.protocol.errors import CorruptMessage, RecordTooLarge, UnsupportedCompression
from millstream.records import _walker
from millstream.records.batch import HEADER_BYTES, MAGIC, BatchHeader, Record, crc_of, read_header
from millstream.records.codecs import DEFAULT_LIMITS, Codec, Limits, decompress

if TYPE_CHECKING:
    from collections.abc import Iterator

    Buffer = bytes | bytearray | memoryview

_CONTROL_KEY: Final = Struct(">hh")
_END_MARKER: Final = Struct(">hi")


class ControlRecord(NamedTuple):
    """What a control batch says: its type, and for the end of a transaction the coordinator's epoch."""

    type: int
    coordinator_epoch: int
    value: bytes


def whole_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header of a batch that lies entirely in the buffer."""
    try:
        header = read_header(buffer, position)
    except struct.error as error:
        raise CorruptMessage("the buffer ends within a batch header") from error
    _check(header, len(buffer) - position)
    return header


def _check(header: BatchHeader, room: int) -> None:
    if header.magic != MAGIC:
        raise CorruptMessage(f"a batch of magic {header.magic}")
    if not HEADER_BYTES <= header.size <= room:
        raise CorruptMessage(f"a batch of {header.size} bytes in a buffer of {room}")
    if header.count < 0 or header.last_offset_delta < 0:
        raise CorruptMessage(f"a batch of {header.count} records up to the offset delta {header.last_offset_delta}")


def payload_of(buffer: Buffer, position: int, header: BatchHeader, limits: Limits = DEFAULT_LIMITS) -> bytes:
    """The batch's records, decompressed."""
    with memoryview(buffer) as view, view[position + HEADER_BYTES : position + header.size] as stored:
        if header.codec == Codec.NONE:
            return bytes(stored)
        try:
            return bytes(decompress(header.codec, stored, limits))
        except (RecordTooLarge, UnsupportedCompression) as error:
            raise CorruptMessage(f"the batch at offset {header.base_offset} cannot be read: {error}") from error


def decode_records(
    buffer: Buffer,
    position: int = 0,
    *,
    header: BatchHeader | None = None,
    check_crc: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Record]:
    """The records of the batch at `position`; `header` is its header where `each_batch` has read it already."""
    if header is None:
        header = whole_header(buffer, position)
    if check_crc and crc_of(buffer, position, header.size) != header.crc:
        raise CorruptMessage(f"the CRC of the batch at offset {header.base_offset} is wrong")
    payload = payload_of(buffer, position, header, limits)
    append_time = header.max_timestamp if header.is_log_append_time else -1
    try:
        return _walker.decode(payload, header.count, header.base_offset, header.base_timestamp, append_time)
    except _walker.BrokenRecords as error:
        raise CorruptMessage(f"the batch at offset {header.base_offset} is broken: {error}") from error


def each_batch(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """(position, header) of the whole batches in a fetched buffer; a partial one at the end is left out, as fetches
    may cut it."""
    position, room = 0, len(buffer)
    while room >= HEADER_BYTES:
        header = read_header(buffer, position)
        size = header.size
        if size > room:
            return
        _check(header, room)
        yield position, header
        position += size
        room -= size


def find_timestamp(
    buffer: Buffer, target_ms: int, position: int = 0, *, limits: Limits = DEFAULT_LIMITS
) -> tuple[int, int] | None:
    """(offset, timestamp) of the first record that is not older than `target_ms`; None if all are older."""
    header = whole_header(buffer, position)
    if header.is_log_append_time:
        return (header.base_offset, header.max_timestamp) if header.max_timestamp >= target_ms else None
    payload = payload_of(buffer, position, header, limits)
    try:
        delta, timestamp = _walker.find_timestamp(
            payload, 0, len(payload), header.count, header.base_timestamp, target_ms
        )
    except _walker.BrokenRecords as error:
        raise CorruptMessage(f"the batch at offset {header.base_offset} is broken: {error}") from error
    return None if delta < 0 else (header.base_offset + delta, timestamp)


def control_record(buffer: Buffer, position: int = 0) -> ControlRecord:
    """The one record of a control batch."""
    records = decode_records(buffer, position)
    if len(records) != 1:
        raise CorruptMessage(f"a control batch of {len(records)} records")
    key, value = records[0].key, records[0].value
    if key is None or len(key) < _CONTROL_KEY.size:
        raise CorruptMessage("a control record without a type")
    _, kind = _CONTROL_KEY.unpack_from(key)
    epoch = _END_MARKER.unpack_from(value)[1] if kind in (0, 1) and value and len(value) >= _END_MARKER.size else -1
    return ControlRecord(kind, epoch, value or b"")
