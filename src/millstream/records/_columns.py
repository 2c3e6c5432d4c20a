# cython: language_level=3, annotation_typing=False
# cython: boundscheck=False, wraparound=False, initializedcheck=False, cdivision=True
"""Whole batches to the buffers of columns: every loop over the records of an Arrow reader, compiled.

Plain Python with its C types in `_columns.pxd`, as `_walker` is, under the same two rules; the one thing that has two
forms is the copy of a run of bytes (`_copy`). Records are walked twice: `measure` believes nothing, checks everything
and says how large each column becomes; `fill` goes over the same bytes and writes into buffers of exactly that size.
Walking a second time costs less than growing buffers, and the bytes are still in the processor's cache.

The buffers are Arrow's: a column of bytes is its data and, one more than rows, the ends of the values in it; where a
column has nulls, a bitmap says which rows are there. A column that is not wanted has empty buffers and is skipped.

    plan, six integers a batch:  position, limit, record count, base offset, base timestamp, append time or -1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.records._walker import _fits, _record, _varint32

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview
    Measured = tuple[int, int, int, int, int, int, int, int, int, int, int, int, int]

_COMPILED = not __file__.endswith(".py")
if _COMPILED:
    # Both names exist while Cython compiles, and never at run time.
    import cython
    from cython.cimports.libc.string import memcpy

OK = 0
MALFORMED = 1
TRAILING = 3
OFFSET_GAP = 4
OVERFLOW = 5

PLAN_FIELDS = 6


def _copy(out: Buffer, at: int, data: Buffer, start: int, size: int) -> None:
    """Copy `size` bytes; whoever calls knows that both ends have them."""
    if _COMPILED:
        memcpy(cython.address(out[at]), cython.address(data[start]), size)
    else:
        out[at : at + size] = data[start : start + size]  # type: ignore[index]


def _mark(bits: Buffer, row: int, valid: bool) -> None:  # noqa: FBT001  called for every row
    """Write a row's bit of a validity bitmap; rows come in order, so each byte starts at 0."""
    if row & 7 == 0:
        bits[row >> 3] = 0  # type: ignore[index]
    if valid:
        bits[row >> 3] |= 1 << (row & 7)  # type: ignore[index]


def measure(data: Buffer, plan: memoryview, low: int, high: int) -> Measured:  # noqa: C901, PLR0912  one loop
    """What the records with offsets in [low, high) need.

    Gives (code, batch, rows, key bytes, null keys, value bytes, null values, rows with headers, headers, bytes of
    header names, bytes of header values, null header values, record). After a code other than OK, `batch` and `record`
    say where it is broken and nothing else counts.
    """
    batches = len(plan) // 6
    rows = key_bytes = null_keys = value_bytes = null_values = 0
    with_headers = all_headers = name_bytes = content_bytes = null_contents = 0
    batch = 0
    while batch < batches:
        position = plan[6 * batch]
        limit = plan[6 * batch + 1]
        count = plan[6 * batch + 2]
        base_offset = plan[6 * batch + 3]
        base_timestamp = plan[6 * batch + 4]
        if position < 0 or limit > len(data):
            raise IndexError("the records lie outside of the buffer")
        previous = -1
        index = 0
        while index < count:
            position, delta, offset_delta, _, key_size, _, value_size, at, headers = _record(data, position, limit)
            if position < 0:
                return MALFORMED, batch, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, index
            if not _fits(base_timestamp, delta) or not _fits(base_offset, offset_delta):
                return OVERFLOW, batch, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, index
            if offset_delta <= previous:
                return OFFSET_GAP, batch, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, index
            previous = offset_delta
            index += 1
            offset = base_offset + offset_delta
            if offset < low or offset >= high:
                continue
            rows += 1
            if key_size < 0:
                null_keys += 1
            else:
                key_bytes += key_size
            if value_size < 0:
                null_values += 1
            else:
                value_bytes += value_size
            if headers > 0:
                with_headers += 1
                all_headers += headers
            while headers > 0:
                size, at = _varint32(data, at, limit)
                name_bytes += size
                size, at = _varint32(data, at + size, limit)
                if size < 0:
                    null_contents += 1
                else:
                    content_bytes += size
                    at += size
                headers -= 1
        if position != limit:
            return TRAILING, batch, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, count
        batch += 1
    return (
        OK,
        0,
        rows,
        key_bytes,
        null_keys,
        value_bytes,
        null_values,
        with_headers,
        all_headers,
        name_bytes,
        content_bytes,
        null_contents,
        0,
    )


def fill(  # noqa: C901, PLR0912, PLR0915  one loop, and every column in it
    data: Buffer,
    plan: memoryview,
    low: int,
    high: int,
    row: int,
    key_end: int,
    value_end: int,
    header: int,
    name_end: int,
    content_end: int,
    offsets: memoryview,
    times: memoryview,
    key_ends: memoryview,
    key_data: memoryview,
    key_valid: memoryview,
    value_ends: memoryview,
    value_data: memoryview,
    value_valid: memoryview,
    header_ends: memoryview,
    header_valid: memoryview,
    name_ends: memoryview,
    name_data: memoryview,
    content_ends: memoryview,
    content_data: memoryview,
    content_valid: memoryview,
) -> tuple[int, int, int, int, int, int]:
    """Write the records that `measure` has counted, from row `row` on; gives where the next call goes on.

    Only for the same bytes, plan and range that were measured: nothing is checked again.
    """
    batches = len(plan) // 6
    with_offsets = len(offsets) > 0
    with_times = len(times) > 0
    with_keys = len(key_ends) > 0
    with_values = len(value_ends) > 0
    with_headers = len(header_ends) > 0
    mark_keys = len(key_valid) > 0
    mark_values = len(value_valid) > 0
    batch = 0
    while batch < batches:
        position = plan[6 * batch]
        limit = plan[6 * batch + 1]
        count = plan[6 * batch + 2]
        base_offset = plan[6 * batch + 3]
        base_timestamp = plan[6 * batch + 4]
        append_time = plan[6 * batch + 5]
        batch += 1
        while count > 0:
            position, delta, offset_delta, key_at, key_size, value_at, value_size, at, headers = _record(
                data, position, limit
            )
            count -= 1
            offset = base_offset + offset_delta
            if offset < low or offset >= high:
                continue
            if with_offsets:
                offsets[row] = offset
            if with_times:
                times[row] = append_time if append_time >= 0 else base_timestamp + delta
            if with_keys:
                if key_size > 0:
                    _copy(key_data, key_end, data, key_at, key_size)
                    key_end += key_size
                key_ends[row + 1] = key_end
                if mark_keys:
                    _mark(key_valid, row, key_size >= 0)
            if with_values:
                if value_size > 0:
                    _copy(value_data, value_end, data, value_at, value_size)
                    value_end += value_size
                value_ends[row + 1] = value_end
                if mark_values:
                    _mark(value_valid, row, value_size >= 0)
            if with_headers:
                _mark(header_valid, row, headers > 0)
                while headers > 0:
                    size, at = _varint32(data, at, limit)
                    _copy(name_data, name_end, data, at, size)
                    name_end += size
                    name_ends[header + 1] = name_end
                    size, at = _varint32(data, at + size, limit)
                    _mark(content_valid, header, size >= 0)
                    if size > 0:
                        _copy(content_data, content_end, data, at, size)
                        content_end += size
                        at += size
                    content_ends[header + 1] = content_end
                    header += 1
                    headers -= 1
                header_ends[row + 1] = header
            row += 1
    return row, key_end, value_end, header, name_end, content_end
