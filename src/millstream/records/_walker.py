# cython: language_level=3, annotation_typing=False
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""The one place that looks inside a batch: every loop over records is here, and is compiled.

This file is plain Python. `_walker.pxd` beside it gives the C types, and setup.py compiles the two with Cython; where
there was no compiler the very same source runs as it is, some hundred times slower (`records.NATIVE` tells). Two
rules keep both forms the same. Nothing may depend on how wide an integer is: what is read from the bytes is cut to
32 or 64 bits at once, and sums that could leave 64 bits are compared before they are made. And nothing is read before
its position was compared with a limit: the compiled form has no bounds checks of its own, so every public function
first makes sure that its limit lies within the buffer.

    record:  size varint | attributes int8 | timestamp delta varlong | offset delta varint
             | key size varint, key | value size varint, value | header count varint
             | (key size varint, key, value size varint, value)*        sizes below 0: null

All varints are zigzag. As in Kafka, a record's attributes are not looked at, and a varint of more than 5 (10) bytes is
an error while the bits beyond 32 (64) in its last byte fall off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.records.batch import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    Buffer = bytes | bytearray | memoryview
    NewRecord = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int]
    Walked = tuple[int, int, int, int, int, int, int, int, int]

# C integers when compiled: written out in a sum, Cython would take such wide literals for Python objects.
_MASK_32 = 0xFFFFFFFF
_MASK_64 = 0xFFFFFFFFFFFFFFFF
_INT64_MAX = 0x7FFFFFFFFFFFFFFF

# What can be wrong inside a batch.
OK = 0
MALFORMED = 1  # a varint, a size or a header that cannot be
TRUNCATED = 2  # fewer records than the header counts
TRAILING = 3  # bytes are left after the last record
OFFSET_GAP = 4  # the offset deltas are not 0, 1, 2, ...
OVERFLOW = 5  # base timestamp and delta leave 64 bits

DESCRIPTIONS = (
    "fine",
    "is malformed",
    "is missing: the batch counts more records than it holds",
    "is not the last: bytes are left after the records that the batch counts",
    "does not have the next offset",
    "has a timestamp beyond 64 bits",
)


class BrokenRecords(ValueError):
    """The inside of a batch is not what its header says. Who met it decides what that means."""

    def __init__(self, code: int, index: int) -> None:
        super().__init__(f"record {index} of the batch {DESCRIPTIONS[code]}")
        self.code = code
        self.index = index


def _varint32(data: Buffer, position: int, limit: int) -> tuple[int, int]:
    """(value, position after it); the position is -1 if no varint ends before `limit`."""
    if limit - position >= 2:
        # Nearly all have one byte or two.
        byte = data[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        raw = data[position + 1]
        if raw < 0x80:
            raw = raw << 7 | (byte & 0x7F)
            return (raw >> 1) ^ -(raw & 1), position + 2
    raw = 0
    shift = 0
    while position < limit and shift <= 28:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= _MASK_32
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, -1


def _varint64(data: Buffer, position: int, limit: int) -> tuple[int, int]:
    """The same for up to ten bytes."""
    raw = 0
    shift = 0
    while position < limit and shift <= 63:
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= _MASK_64
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, -1


def _headers_end(data: Buffer, position: int, limit: int, count: int) -> int:
    """Where `count` record headers end, or -1."""
    while count > 0:
        size, position = _varint32(data, position, limit)
        if position < 0 or size < 0 or size > limit - position:
            return -1
        position += size
        size, position = _varint32(data, position, limit)
        if position < 0 or size > limit - position:
            return -1
        if size > 0:
            position += size
        count -= 1
    return position


def _record(data: Buffer, position: int, limit: int) -> Walked:
    """One record: (end, timestamp delta, offset delta, key at, key size, value at, value size, headers at, headers).

    The end is -1 if it is malformed; then nothing else counts.
    """
    size, position = _varint32(data, position, limit)
    if position < 0 or size < 0 or size > limit - position:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    end = position + size
    timestamp_delta, position = _varint64(data, position + 1, end)
    if position < 0:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    offset_delta, position = _varint32(data, position, end)
    if position < 0:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    key_size, key_at = _varint32(data, position, end)
    if key_at < 0 or key_size > end - key_at:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    position = key_at + key_size if key_size > 0 else key_at
    value_size, value_at = _varint32(data, position, end)
    if value_at < 0 or value_size > end - value_at:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    position = value_at + value_size if value_size > 0 else value_at
    headers, headers_at = _varint32(data, position, end)
    if headers_at < 0 or headers < 0 or headers > end - headers_at:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    if _headers_end(data, headers_at, end, headers) != end:
        return -1, 0, 0, 0, 0, 0, 0, 0, 0
    return end, timestamp_delta, offset_delta, key_at, key_size, value_at, value_size, headers_at, headers


def _fits(base: int, delta: int) -> bool:
    """Whether the sum stays within 64 bits."""
    if delta >= 0:
        return base <= _INT64_MAX - delta
    return base >= -_INT64_MAX - 1 - delta


def validate(  # noqa: C901  one loop over everything Kafka checks; keywords cost more than the walk
    data: Buffer, position: int, limit: int, count: int, base_timestamp: int, low: int, high: int
) -> tuple[int, int, int, int, int, int]:
    """Walk the records of a batch that a producer sent: everything has to be there, and nothing else.

    Gives (code, index, max timestamp, its index, first index without a key, first index with a timestamp outside of
    [low, high]); the last two are -1 where there is none. A timestamp of -1 means that there is none: it has no range.
    After a code other than OK only the index counts.
    """
    if position < 0 or limit > len(data):
        raise IndexError("the records lie outside of the buffer")
    index = 0
    max_timestamp = -1
    max_index = -1
    keyless = -1
    out_of_range = -1
    while index < count:
        if position >= limit:
            return TRUNCATED, index, 0, 0, 0, 0
        position, delta, offset_delta, _, key_size, _, _, _, _ = _record(data, position, limit)
        if position < 0:
            return MALFORMED, index, 0, 0, 0, 0
        if offset_delta != index:
            return OFFSET_GAP, index, 0, 0, 0, 0
        if not _fits(base_timestamp, delta):
            return OVERFLOW, index, 0, 0, 0, 0
        timestamp = base_timestamp + delta
        if timestamp > max_timestamp:
            max_timestamp = timestamp
            max_index = index
        if (timestamp < low or timestamp > high) and timestamp != -1 and out_of_range < 0:
            out_of_range = index
        if key_size < 0 and keyless < 0:
            keyless = index
        index += 1
    if position != limit:
        return TRAILING, count, 0, 0, 0, 0
    return OK, count, max_timestamp, max_index, keyless, out_of_range


def find_timestamp(
    data: Buffer, position: int, limit: int, count: int, base_timestamp: int, target: int
) -> tuple[int, int]:
    """(offset delta, timestamp) of the first record that is not older than `target`; (-1, -1) if all are."""
    if position < 0 or limit > len(data):
        raise IndexError("the records lie outside of the buffer")
    index = 0
    while index < count:
        position, delta, offset_delta, _, _, _, _, _, _ = _record(data, position, limit)
        if position < 0:
            raise BrokenRecords(MALFORMED, index)
        if not _fits(base_timestamp, delta):
            raise BrokenRecords(OVERFLOW, index)
        if base_timestamp + delta >= target:
            return offset_delta, base_timestamp + delta
        index += 1
    return -1, -1


def decode(data: bytes, count: int, base_offset: int, base_timestamp: int, append_time: int) -> list[Record]:
    """Every record as a Python object. `append_time` is the time of all of them, or -1 to use their own."""
    view = data
    limit = len(data)
    position = 0
    index = 0
    records = []
    while index < count:
        position, delta, offset_delta, key_at, key_size, value_at, value_size, at, headers = _record(
            view, position, limit
        )
        if position < 0:
            raise BrokenRecords(MALFORMED, index)
        if not _fits(base_timestamp, delta) or not _fits(base_offset, offset_delta):
            raise BrokenRecords(OVERFLOW, index)
        key = data[key_at : key_at + key_size] if key_size >= 0 else None
        value = data[value_at : value_at + value_size] if value_size >= 0 else None
        pairs = _headers(data, view, at, position, headers) if headers > 0 else ()
        timestamp = append_time if append_time >= 0 else base_timestamp + delta
        records.append(Record(base_offset + offset_delta, timestamp, key, value, pairs))
        index += 1
    if position != limit:
        raise BrokenRecords(TRAILING, count)
    return records


def _headers(data: bytes, view: Buffer, position: int, limit: int, count: int) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a record that was walked before, so every size is known to fit."""
    pairs = []
    while count > 0:
        size, position = _varint32(view, position, limit)
        name = data[position : position + size].decode("utf-8", "replace")
        position += size
        size, position = _varint32(view, position, limit)
        value = None
        if size >= 0:
            value = data[position : position + size]
            position += size
        pairs.append((name, value))
        count -= 1
    return tuple(pairs)


def keys(data: bytes, count: int) -> list[tuple[int, bytes | None, bool, int]]:
    """What compaction looks at: (offset delta, key, whether the value is null, timestamp delta) of every record."""
    view = data
    limit = len(data)
    position = 0
    index = 0
    previous = -1
    found = []
    while index < count:
        position, delta, offset_delta, key_at, key_size, _, value_size, _, _ = _record(view, position, limit)
        if position < 0:
            raise BrokenRecords(MALFORMED, index)
        if offset_delta <= previous:
            raise BrokenRecords(OFFSET_GAP, index)
        previous = offset_delta
        key = data[key_at : key_at + key_size] if key_size >= 0 else None
        found.append((offset_delta, key, value_size < 0, delta))
        index += 1
    if position != limit:
        raise BrokenRecords(TRAILING, count)
    return found


def retain(data: bytes, count: int, kept: bytes, base_timestamp: int, new_base_timestamp: int) -> tuple[bytes, int]:
    """The records whose byte in `kept` is not 0, counted from a new base timestamp, and the newest of their timestamps.

    Offset deltas stay, so that a record keeps its offset. With the same base timestamp the bytes are copied.
    """
    if len(kept) != count:
        raise IndexError("one byte per record")
    view = data
    limit = len(data)
    position = 0
    index = 0
    max_timestamp = -1
    out = bytearray()
    while index < count:
        start = position
        position, delta, _, _, _, _, _, _, _ = _record(view, position, limit)
        if position < 0:
            raise BrokenRecords(MALFORMED, index)
        if kept[index] != 0:
            if not _fits(base_timestamp, delta):
                raise BrokenRecords(OVERFLOW, index)
            timestamp = base_timestamp + delta
            max_timestamp = max(max_timestamp, timestamp)
            if base_timestamp == new_base_timestamp:
                out += data[start:position]
            else:
                if new_base_timestamp < 0 or not _fits(timestamp, -new_base_timestamp):
                    raise BrokenRecords(OVERFLOW, index)
                _size, body = _varint32(view, start, limit)
                _, tail = _varint64(view, body + 1, limit)
                delta = timestamp - new_base_timestamp
                _append_varint(out, 1 + _varint_size(delta) + position - tail)
                out.append(view[body])
                _append_varint(out, delta)
                out += data[tail:position]
        index += 1
    if position != limit:
        raise BrokenRecords(TRAILING, count)
    return bytes(out), max_timestamp


def _varint_size(value: int) -> int:
    """Bytes of a zigzag varint."""
    raw = (value << 1) ^ (value >> 63)
    raw &= _MASK_64
    size = 1
    while raw >= 0x80:
        raw >>= 7
        size += 1
    return size


def _append_varint(out: bytearray, value: int) -> None:
    raw = (value << 1) ^ (value >> 63)
    raw &= _MASK_64
    while raw >= 0x80:
        out.append((raw & 0x7F) | 0x80)
        raw >>= 7
    out.append(raw)


def _append_bytes(out: bytearray, content: bytes | None) -> None:
    if content is None:
        out.append(0x01)
    else:
        _append_varint(out, len(content))
        out += content


def encode(records: Sequence[NewRecord], base_timestamp: int) -> bytes:
    """The bytes of records with the offset deltas 0, 1, 2, ..."""
    out = bytearray()
    body = bytearray()
    index = 0
    for key, value, headers, timestamp in records:
        if timestamp < -1 or base_timestamp < -1 or not _fits(timestamp, -base_timestamp):
            raise ValueError("a timestamp is -1 or counts from 1970")
        body.append(0)
        delta = timestamp - base_timestamp
        _append_varint(body, delta)
        _append_varint(body, index)
        _append_bytes(body, key)
        _append_bytes(body, value)
        _append_varint(body, len(headers))
        for name, content in headers:
            _append_bytes(body, name.encode())
            _append_bytes(body, content)
        _append_varint(out, len(body))
        out += body
        body.clear()
        index += 1  # noqa: SIM113  a C integer when compiled
    return bytes(out)


def murmur2(data: Buffer) -> int:
    """The hash by which Java's producer spreads keys over partitions, as the 32 bits of its signed result."""
    return murmur2_between(data, 0, len(data))


def murmur2_between(data: Buffer, position: int, limit: int) -> int:
    """The same for a part of the bytes; whoever calls knows that they have it."""
    mixed = (0x9747B28C ^ (limit - position)) & _MASK_32
    while position + 4 <= limit:
        word = data[position + 3]
        word = word << 8 | data[position + 2]
        word = word << 8 | data[position + 1]
        word = word << 8 | data[position]
        word = (word * 0x5BD1E995) & _MASK_32
        word ^= word >> 24
        word = (word * 0x5BD1E995) & _MASK_32
        mixed = ((mixed * 0x5BD1E995) & _MASK_32) ^ word
        position += 4
    if position < limit:
        word = 0
        while limit > position:
            limit -= 1
            word = word << 8 | data[limit]
        mixed = ((mixed ^ word) * 0x5BD1E995) & _MASK_32
    mixed ^= mixed >> 13
    mixed = (mixed * 0x5BD1E995) & _MASK_32
    return mixed ^ (mixed >> 15)
