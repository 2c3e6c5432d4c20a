"""Columns of bytes, of headers and of times as they lie in Arrow's memory.

The native encoder reads 32-bit ends and the bytes between them, which most columns have already. Those with 64-bit ends
(`large_string`) get ends that count from the first of the slice, so that a chunk of any size can be written slice by
slice. What is stored in another way (views, dictionaries, values of one width) is copied; `cutting` sees to it that
this is never much.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

_NO_TIMESTAMP: Final = -1
_NO_INTS: Final = memoryview(array("i"))
_NO_BYTES: Final = memoryview(b"")
_TICKS_PER_MS: Final = {"us": 1_000, "ns": 1_000_000}


class Column(NamedTuple):
    """A column of bytes, or of lists, as Arrow has it."""

    ends: memoryview = _NO_INTS
    data: memoryview = _NO_BYTES
    valid: memoryview = _NO_BYTES
    valid_at: int = 0

    def checked(self, rows: int, bytes_or_items: int, name: str) -> Column:
        """Itself; ValueError if the native code, which looks nowhere else, would read what is not there."""
        if len(self.ends) and (len(self.ends) != rows + 1 or self.ends[-1] > bytes_or_items):
            raise ValueError(f"column {name!r} is malformed: its values do not lie where it says")
        return self


def bytes_column(column: pa.Array, name: str) -> Column:
    """A column of bytes or text; one of another type has to be cast by whoever knows how."""
    column = plain(column)
    kind = column.type
    if pa.types.is_null(kind):
        return Column()
    if not is_bytes(kind):
        raise TypeError(f"column {name!r} holds {kind}: a record needs bytes or text")
    if is_large(kind):
        validity, buffer, data = column.buffers()
        ends, first = _from_first(buffer, column, pa.int64())
    else:
        column = column.cast(pa.binary())
        validity, buffer, data = column.buffers()
        ends, first = _ints(buffer, column.offset, len(column) + 1), 0
    found = memoryview(data).cast("B")[first:] if data is not None else _NO_BYTES
    return Column(ends, found, *_valid(column, validity)).checked(len(column), len(found), name)


def plain(column: pa.Array) -> pa.Array:
    """What a dictionary or an extension stands for: Polars' categories, Arrow's own JSON ..."""
    if isinstance(column.type, pa.BaseExtensionType):
        return plain(column.storage)
    if not pa.types.is_dictionary(column.type):
        return column
    values = column.dictionary
    # Arrow has no `take` for views, which Polars has in its dictionaries.
    return (values.cast(pa.large_binary()) if is_view(values.type) else values).take(column.indices)


def is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_string(kind)
        or is_large(kind)
        or pa.types.is_fixed_size_binary(kind)
        or is_view(kind)
    )


def is_large(kind: pa.DataType) -> bool:
    return bool(pa.types.is_large_binary(kind) or pa.types.is_large_string(kind))


def is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary_view(kind) or pa.types.is_string_view(kind))


def is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def without_views(kind: pa.DataType) -> pa.DataType:
    """Polars' kinds of text and bytes as the older ones: Arrow cannot choose rows of those."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        value = kind.value_field.with_type(without_views(kind.value_type))
        return pa.list_(value) if pa.types.is_list(kind) else pa.large_list(value)
    if pa.types.is_map(kind):
        key = kind.key_field.with_type(without_views(kind.key_type))
        return pa.map_(key, kind.item_field.with_type(without_views(kind.item_type)), kind.keys_sorted)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(without_views(field.type)) for field in kind])
    return kind


def header_columns(column: pa.Array, name: str) -> tuple[Column, Column, Column]:
    """(the lists, the names, the contents) of a column of headers."""
    if pa.types.is_null(column.type):
        return Column(), Column(), Column()
    column = as_lists_of_pairs(column)
    lists, names, contents = _in_place(column)
    if names.null_count and column.null_count:
        # Beneath a list that is null there may be anything, even a header without a key.
        lists, names, contents = _gathered(column)
    if names.null_count:
        raise ValueError("a header has no key")
    if pa.types.is_null(contents.type):
        # The native code looks for ends where there are headers.
        contents = contents.cast(pa.binary())
    lists.checked(len(column), len(names), name)
    return lists, bytes_column(names, name), bytes_column(contents, name)


def as_lists_of_pairs(column: pa.Array) -> pa.Array:
    """Headers as lists of (key, value), in whichever order; from a map, or from lists that lie about in any order."""
    kind = column.type
    if pa.types.is_map(kind):
        pairs = column.values
        buffers = column.buffers()[:2]
        return pa.Array.from_buffers(
            pa.list_(pairs.type), len(column), buffers, column.null_count, column.offset, [pairs]
        )
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind) or is_list_view(kind)
    if not listed or not pa.types.is_struct(kind.value_type) or kind.value_type.num_fields != 2:
        raise TypeError(f"headers are a list of (key, value) structs or a map, not {kind}")
    if not is_list_view(kind):
        return column
    # Not by a cast: what Arrow makes of a list_view has one end too few.
    lists, pairs = _gathered_pairs(_with_values(column, column.values.cast(without_views(kind.value_type))))
    return pa.Array.from_buffers(pa.list_(pairs.type), len(column), [None, pa.py_buffer(lists.ends)], 0, 0, [pairs])


def pairs_of(column: pa.Array) -> tuple[memoryview, pa.Array]:
    """(ends, pairs): of lists of pairs those of this slice, counted from its first."""
    large = pa.types.is_large_list(column.type)
    ends, first = _from_first(column.buffers()[1], column, pa.int64() if large else pa.int32())
    return ends, column.values.slice(first, ends[-1])


def _in_place(column: pa.Array) -> tuple[Column, pa.Array, pa.Array]:
    ends, pairs = pairs_of(column)
    return Column(ends, _NO_BYTES, *_valid(column, column.buffers()[0])), *_named(pairs)


def _gathered(column: pa.Array) -> tuple[Column, pa.Array, pa.Array]:
    lists, pairs = _gathered_pairs(column)
    return lists, *_named(pairs)


def _gathered_pairs(column: pa.Array) -> tuple[Column, pa.Array]:
    """The pairs of one list after the other, those beneath null left out."""
    import pyarrow.compute as pc

    sizes: Sequence[int | None] = pc.list_value_length(column).to_pylist()
    return Column(memoryview(array("i", accumulate((size or 0 for size in sizes), initial=0)))), column.flatten()


def _with_values(column: pa.Array, values: pa.Array) -> pa.Array:
    """The same lists of other values."""
    make = pa.large_list_view if pa.types.is_large_list_view(column.type) else pa.list_view
    buffers = column.buffers()[:3]
    return pa.Array.from_buffers(make(values.type), len(column), buffers, column.null_count, column.offset, [values])


def _named(pairs: pa.Array) -> tuple[pa.Array, pa.Array]:
    """(names, contents), by what the two are called or else by their place."""
    first, second = pairs.flatten()
    swapped = [field.name for field in pairs.type] == ["value", "key"]
    return (second, first) if swapped else (first, second)


def times_of(batch: pa.RecordBatch, name: str | None, now_ms: int) -> memoryview:
    """Milliseconds since 1970 for each row; now where there is none, which Kafka calls -1."""
    if name is None or pa.types.is_null(batch.column(name).type):
        return memoryview(array("q", [now_ms]) * batch.num_rows)
    import pyarrow.compute as pc

    column = batch.column(name)
    if pa.types.is_timestamp(column.type):
        _refuse_parts_before_1970(column)
        # Finer units are cut: Kafka has milliseconds. Coarser ones may be too large for it.
        safe = column.type.unit == "s"
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=safe).cast(pa.int64())
    elif not pa.types.is_integer(column.type):
        raise TypeError(f"column {name!r} holds {column.type}: a record's time is a timestamp, or milliseconds")
    column = column.cast(pa.int64())
    if column.null_count:
        column = column.fill_null(now_ms)
    data = memoryview(column.buffers()[1]).cast("B")[8 * column.offset : 8 * (column.offset + len(column))]
    if pc.min(column).as_py() != _NO_TIMESTAMP:
        return data.cast("q")
    return memoryview(array("q", [now_ms if time == _NO_TIMESTAMP else time for time in data.cast("q")]))


def _refuse_parts_before_1970(column: pa.Array) -> None:
    """Cutting goes towards zero: half a millisecond before 1970 would become 1970, and one and a half would be now."""
    import pyarrow.compute as pc

    ticks = _TICKS_PER_MS.get(column.type.unit)
    if ticks is None:
        return
    numbers = column.view(pa.int64())
    lowest = pc.min(numbers).as_py()
    if lowest is not None and lowest < 0:
        before = numbers.filter(pc.less(numbers, 0))
        if pc.any(pc.not_equal(before, _NO_TIMESTAMP * ticks)).as_py():
            raise ValueError("a timestamp is -1 or counts from 1970")


def _from_first(buffer: pa.Buffer | None, column: pa.Array, kind: pa.DataType) -> tuple[memoryview, int]:
    """(32-bit ends that count from the first of a slice, the first)."""
    count = len(column) + 1
    if buffer is None or buffer.size == 0:
        return _ints(None, 0, count), 0
    given = pa.Array.from_buffers(kind, count, [None, buffer], 0, column.offset)
    first: int = given[0].as_py()
    if first == 0 and pa.types.is_int32(kind):
        return _ints(buffer, column.offset, count), 0
    import pyarrow.compute as pc

    # By a scalar of Arrow's: one that is made of a Python number would import pandas where it is installed.
    ends = pc.subtract(given, given[0]).cast(pa.int32())
    return _ints(ends.buffers()[1], ends.offset, count), first


def _ints(buffer: pa.Buffer | None, offset: int, count: int) -> memoryview:
    if buffer is None or buffer.size == 0:
        # Arrow leaves the ends of no values out.
        return memoryview(array("i", bytes(4 * count)))
    return memoryview(buffer).cast("B")[4 * offset : 4 * (offset + count)].cast("i")


def _valid(column: pa.Array, validity: pa.Buffer | None) -> tuple[memoryview, int]:
    if validity is None or column.null_count == 0:
        return _NO_BYTES, 0
    return memoryview(validity).cast("B"), column.offset
