# cython: language_level=3, annotation_typing=False
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Columns to whole batches: each row finds its partition, rows are sorted by it, and runs of them become records.

Plain Python with its C types in `_scatter.pxd`, as `_walker` and `_columns` are. A column of bytes comes as Arrow has
it: `ends`, one more than rows, with each value between two of them; its data; and a bitmap of the rows that are there,
empty if all are, which starts at bit `valid_at`. A column that does not exist has empty buffers.

What runs once or more per record is a C function of this very module, so that the compiler can put it in place: called
across modules, varints and copies of a few bytes took four fifths of the time of a record.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.records._walker import murmur2_between

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview

_COMPILED = not __file__.endswith(".py")
if _COMPILED:
    # Both names exist while Cython compiles, and never at run time.
    import cython
    from cython.cimports.libc.string import memcpy

_MASK_64 = 0xFFFFFFFFFFFFFFFF
_INT64_MAX = 0x7FFFFFFFFFFFFFFF
_RECORD_BYTES_MAX = 0x3FFFFFFF
# What a record without key and headers takes besides its value: 9 to 11 bytes, unless times lie far apart.
RECORD_OVERHEAD = 12

# How a run of rows ended.
_FINE = 0
_WRONG_TIME = 1
_TOO_LARGE = 2


def _is_there(valid: Buffer, at: int) -> bool:
    return len(valid) == 0 or (valid[at >> 3] >> (at & 7)) & 1 != 0


def partitions_of_keys(
    ends: memoryview, data: Buffer, valid: Buffer, valid_at: int, partitions: int, chosen: memoryview
) -> None:
    """Give the rows that have a key and no partition (-1) the one that Java's producer would choose."""
    rows = len(chosen)
    row = 0
    while row < rows:
        if chosen[row] < 0 and _is_there(valid, valid_at + row):
            chosen[row] = (murmur2_between(data, ends[row], ends[row + 1]) & 0x7FFFFFFF) % partitions
        row += 1


def spread(
    chosen: memoryview, ends: memoryview, partitions: int, current: int, filled: int, sticky_bytes: int
) -> tuple[int, int]:
    """Give the rows that still have no partition one after the other, each for `sticky_bytes` at the most: what did not
    fit the batch that it is meant for would be a small batch of its own.

    `current` and `filled` are where it stands; the new ones are returned for the next call. `ends` are the values'.
    """
    rows = len(chosen)
    with_sizes = len(ends) > 0
    overhead = RECORD_OVERHEAD
    row = 0
    while row < rows:
        if chosen[row] < 0:
            size = overhead
            if with_sizes:
                size += ends[row + 1] - ends[row]
            if filled > 0 and filled + size > sticky_bytes:
                filled = 0
                current = (current + 1) % partitions
            chosen[row] = current
            filled += size
        row += 1
    return current, filled


def group(chosen: memoryview, starts: memoryview, order: memoryview) -> int:
    """Sort rows by partition, in the order they have: those of partition p are order[starts[p]:starts[p + 1]].

    Gives the first row whose partition does not exist, or -1.
    """
    rows = len(chosen)
    partitions = len(starts) - 1
    row = 0
    while row < rows:
        partition = chosen[row]
        if partition < 0 or partition >= partitions:
            return row
        starts[partition + 1] += 1
        row += 1
    partition = 0
    while partition < partitions:
        starts[partition + 1] += starts[partition]
        partition += 1
    row = 0
    while row < rows:
        at = starts[chosen[row]]
        order[at] = row
        starts[chosen[row]] += 1
        row += 1
    # Each start has moved to the next one's place.
    partition = partitions
    while partition > 0:
        starts[partition] = starts[partition - 1]
        partition -= 1
    starts[0] = 0
    return -1


def _varint_size(value: int) -> int:
    """Bytes of a zigzag varint."""
    raw = (value << 1) ^ (value >> 63)
    raw &= _MASK_64
    if raw < 0x80:
        return 1
    if raw < 0x4000:
        return 2
    size = 3
    raw >>= 21
    while raw > 0:
        raw >>= 7
        size += 1
    return size


def _put_varint(out: memoryview, position: int, value: int) -> int:
    raw = (value << 1) ^ (value >> 63)
    raw &= _MASK_64
    while raw >= 0x80:
        out[position] = (raw & 0x7F) | 0x80
        raw >>= 7
        position += 1
    out[position] = raw
    return position + 1


def _put_bytes(out: memoryview, position: int, data: Buffer, start: int, size: int) -> int:
    """A size and its bytes; below 0 is null."""
    position = _put_varint(out, position, size)
    if size > 0:
        if _COMPILED:
            memcpy(cython.address(out[position]), cython.address(data[start]), size)
        else:
            out[position : position + size] = data[start : start + size]
        position += size
    return position


def encode(
    order: memoryview,
    at: int,
    stop: int,
    times: memoryview,
    key_ends: memoryview,
    key_data: Buffer,
    key_valid: Buffer,
    key_valid_at: int,
    value_ends: memoryview,
    value_data: Buffer,
    value_valid: Buffer,
    value_valid_at: int,
    header_ends: memoryview,
    header_valid: Buffer,
    header_valid_at: int,
    name_ends: memoryview,
    name_data: Buffer,
    content_ends: memoryview,
    content_data: Buffer,
    content_valid: Buffer,
    content_valid_at: int,
    out: memoryview,
    position: int,
) -> tuple[int, int, int, int]:
    """Write the rows order[at:stop] into `out` from `position` on, as many as fit.

    Gives (the first that is not written, position, base timestamp, max timestamp). If not even one fits, the position
    is how long `out` must be. Other threads run meanwhile: while one batch is encoded, the one before is sent.
    """
    if _COMPILED:
        with cython.nogil:
            found = _encode_rows(
                order, at, stop, times, key_ends, key_data, key_valid, key_valid_at, value_ends, value_data,
                value_valid, value_valid_at, header_ends, header_valid, header_valid_at, name_ends, name_data,
                content_ends, content_data, content_valid, content_valid_at, out, position,
            )  # fmt: skip
    else:
        found = _encode_rows(
            order, at, stop, times, key_ends, key_data, key_valid, key_valid_at, value_ends, value_data,
            value_valid, value_valid_at, header_ends, header_valid, header_valid_at, name_ends, name_data,
            content_ends, content_data, content_valid, content_valid_at, out, position,
        )  # fmt: skip
    if found[0] == _WRONG_TIME:
        raise ValueError("a timestamp is -1 or counts from 1970")
    if found[0] == _TOO_LARGE:
        raise ValueError(f"row {order[found[1]]} makes a record of {found[2]} bytes, which no broker takes")
    return found[1], found[2], found[3], found[4]


def _encode_rows(  # noqa: C901, PLR0912, PLR0915  one loop, and every column in it
    order: memoryview,
    at: int,
    stop: int,
    times: memoryview,
    key_ends: memoryview,
    key_data: Buffer,
    key_valid: Buffer,
    key_valid_at: int,
    value_ends: memoryview,
    value_data: Buffer,
    value_valid: Buffer,
    value_valid_at: int,
    header_ends: memoryview,
    header_valid: Buffer,
    header_valid_at: int,
    name_ends: memoryview,
    name_data: Buffer,
    content_ends: memoryview,
    content_data: Buffer,
    content_valid: Buffer,
    content_valid_at: int,
    out: memoryview,
    position: int,
) -> tuple[int, int, int, int, int]:
    """The work of `encode`, without a Python object: (what is wrong, at, position, base timestamp, max timestamp)."""
    with_keys = len(key_ends) > 0
    with_values = len(value_ends) > 0
    with_headers = len(header_ends) > 0
    room = len(out)
    base_timestamp = 0
    max_timestamp = -1
    index = 0
    while at < stop:
        row = order[at]
        timestamp = times[row]
        if index == 0:
            base_timestamp = timestamp
        if timestamp < -1 or (base_timestamp < 0 and timestamp == _INT64_MAX):
            return _WRONG_TIME, at, position, base_timestamp, max_timestamp
        delta = timestamp - base_timestamp
        key_at = value_at = 0
        key_size = value_size = -1
        if with_keys and _is_there(key_valid, key_valid_at + row):
            key_at = key_ends[row]
            key_size = key_ends[row + 1] - key_at
        if with_values and _is_there(value_valid, value_valid_at + row):
            value_at = value_ends[row]
            value_size = value_ends[row + 1] - value_at
        header = last_header = 0
        if with_headers and _is_there(header_valid, header_valid_at + row):
            header = header_ends[row]
            last_header = header_ends[row + 1]
        headers = last_header - header
        body = 1 + _varint_size(delta) + _varint_size(index) + _varint_size(key_size) + _varint_size(value_size)
        body += _varint_size(headers)
        if key_size > 0:
            body += key_size
        if value_size > 0:
            body += value_size
        while header < last_header:
            size = name_ends[header + 1] - name_ends[header]
            body += _varint_size(size) + size
            size = -1
            if _is_there(content_valid, content_valid_at + header):
                size = content_ends[header + 1] - content_ends[header]
                body += size
            body += _varint_size(size)
            header += 1
        if body > _RECORD_BYTES_MAX:
            return _TOO_LARGE, at, body, base_timestamp, max_timestamp
        size = body + _varint_size(body)
        if size > room - position:
            if index == 0:
                position += size
            break
        position = _put_varint(out, position, body)
        out[position] = 0
        position = _put_varint(out, position + 1, delta)
        position = _put_varint(out, position, index)
        # Written out, as `_put_bytes` is for headers: a call hands over whole descriptions of buffers.
        position = _put_varint(out, position, key_size)
        if key_size > 0:
            if _COMPILED:
                memcpy(cython.address(out[position]), cython.address(key_data[key_at]), key_size)
            else:
                out[position : position + key_size] = key_data[key_at : key_at + key_size]
            position += key_size
        position = _put_varint(out, position, value_size)
        if value_size > 0:
            if _COMPILED:
                memcpy(cython.address(out[position]), cython.address(value_data[value_at]), value_size)
            else:
                out[position : position + value_size] = value_data[value_at : value_at + value_size]
            position += value_size
        position = _put_varint(out, position, headers)
        header = last_header - headers
        while header < last_header:
            size = name_ends[header + 1] - name_ends[header]
            position = _put_bytes(out, position, name_data, name_ends[header], size)
            size = -1
            if _is_there(content_valid, content_valid_at + header):
                size = content_ends[header + 1] - content_ends[header]
            position = _put_bytes(out, position, content_data, content_ends[header], size)
            header += 1
        max_timestamp = max(max_timestamp, timestamp)
        index += 1
        at += 1
    return _FINE, at, position, base_timestamp, max_timestamp
