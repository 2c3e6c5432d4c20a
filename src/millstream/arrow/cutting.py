"""Record batches of so many bytes that they can be seen at once.

A batch comes with a bounded number of rows, which says nothing about bytes where rows share them: 60,000 rows of a
dictionary that all point to one text of 40 KB are 2.4 GB as bytes. What has to be copied is cut to `COPIED_BYTES_MAX`,
and what lies there already to what ends of 32 bits can say. Columns of plain bytes and text are neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from millstream.arrow.columns import as_lists_of_pairs, is_bytes, is_large, is_view, pairs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.arrow.encoding import Names

COPIED_BYTES_MAX: Final = 32 * 1024 * 1024
_SPANNED_BYTES_MAX: Final = (1 << 31) - 1


def pieces(batch: pa.RecordBatch, names: Names) -> Iterator[pa.RecordBatch]:
    """The rows in their order, in pieces whose keys, values and headers are small enough."""
    return _halved(batch, lambda part: _is_too_much(part, names))


def pieces_of_views(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The rows in their order, in pieces that can be cast to `columns.without_views`."""
    views = [at for at, field in enumerate(batch.schema) if is_view(field.type)]
    return _halved(batch, lambda part: sum(_copied_bytes(part.column(at)) for at in views) > COPIED_BYTES_MAX)


def _halved(batch: pa.RecordBatch, is_too_much: Callable[[pa.RecordBatch], bool]) -> Iterator[pa.RecordBatch]:
    """One row is never cut, however large it is."""
    if batch.num_rows > 1 and is_too_much(batch):
        half = batch.num_rows // 2
        yield from _halved(batch.slice(0, half), is_too_much)
        yield from _halved(batch.slice(half), is_too_much)
    else:
        yield batch


def _is_too_much(batch: pa.RecordBatch, names: Names) -> bool:
    columns = [batch.column(name) for name in (names.key, names.value) if name is not None]
    if names.headers is not None and not pa.types.is_null(batch.column(names.headers).type):
        columns += pairs_of(as_lists_of_pairs(batch.column(names.headers)))[1].flatten()
    return sum(map(_copied_bytes, columns)) > COPIED_BYTES_MAX or any(
        _spanned_bytes(column) > _SPANNED_BYTES_MAX for column in columns
    )


def _spanned_bytes(column: pa.Array) -> int:
    """From the first byte to the last, for types that may have more than 32 bits can say."""
    if isinstance(column.type, pa.BaseExtensionType):
        return _spanned_bytes(column.storage)
    if not is_large(column.type) or len(column) == 0:
        return 0
    ends = memoryview(column.buffers()[1]).cast("B")[8 * column.offset : 8 * (column.offset + len(column) + 1)]
    longs = ends.cast("q")
    return int(longs[-1] - longs[0])


def _copied_bytes(column: pa.Array) -> int:
    """How much is copied to have the values one after the other."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _copied_bytes(column.storage)
    if pa.types.is_fixed_size_binary(kind):
        return int(kind.byte_width) * len(column)
    if not is_view(kind) and not pa.types.is_dictionary(kind):
        return 0
    import pyarrow.compute as pc

    if is_view(kind):
        return pc.sum(_view_sizes(column)).as_py() or 0
    values = column.dictionary
    if is_view(values.type):
        sizes = _view_sizes(values)
    elif is_bytes(values.type):
        sizes = pc.binary_length(values)
    else:
        return 0
    at_most = (pc.max(sizes).as_py() or 0) * len(column)
    return at_most if at_most <= COPIED_BYTES_MAX else pc.sum(sizes.take(column.indices)).as_py() or 0


def _view_sizes(column: pa.Array) -> pa.Array:
    """The first of each view's four numbers, for which Arrow has no function."""
    import pyarrow.compute as pc

    numbers = pa.Array.from_buffers(pa.int32(), 4 * len(column), [None, column.buffers()[1]], 0, 4 * column.offset)
    # What those of a null say has no meaning.
    nulls = column.is_null() if column.null_count else None
    return pc.list_element(pa.FixedSizeListArray.from_arrays(numbers, 4, mask=nulls), 0)
