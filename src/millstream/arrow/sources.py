"""What can be written, cut into record batches, and which of their columns are a record's parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from millstream.arrow.encoding import Names, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

CHUNK_ROWS: Final = 65_536
_CHUNK_ROWS_MIN: Final = 4_096

# A table, a record batch, an iterable of them, or an object with __arrow_c_stream__: Polars', DuckDB's, pandas' ...
Source = Any


def each_batch(data: Source) -> Iterator[pa.RecordBatch]:
    """The data as record batches of a bounded number of rows."""
    if isinstance(data, pa.RecordBatch):
        for start in range(0, data.num_rows, CHUNK_ROWS):
            yield data.slice(start, CHUNK_ROWS)
    elif isinstance(data, pa.Table):
        chunks = max((column.num_chunks for column in data.columns), default=1)
        if data.num_rows < chunks * _CHUNK_ROWS_MIN:
            # Many small pieces would become as many small batches in the log.
            data = data.combine_chunks()
        yield from data.to_batches(max_chunksize=CHUNK_ROWS)
    elif isinstance(data, pa.RecordBatchReader):
        for batch in data:
            yield from each_batch(batch)
    elif hasattr(data, "__arrow_c_stream__"):
        yield from each_batch(pa.RecordBatchReader.from_stream(data))
    elif isinstance(data, Iterable) and not isinstance(data, str | bytes | dict):
        for part in data:
            yield from each_batch(part)
    else:
        raise TypeError(f"a {type(data).__name__} cannot be written: give a table, a record batch or several of them")


def split_by_topic(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """The rows of each topic that the column `topic` names, in the order they have."""
    import pyarrow.compute as pc

    if "topic" not in batch.schema.names:
        raise ValueError("no topic is given, and the data has no column 'topic'")
    column = batch.column("topic")
    if column.null_count:
        raise ValueError("a row has no topic")
    # Text of one kind, whatever it came as: Arrow compares no views.
    column = plain(column).cast(pa.string())
    names = column.unique().to_pylist()
    if len(names) == 1:
        return [(names[0], batch)]
    schema = pa.schema([field.with_type(_without_views(field.type)) for field in batch.schema])
    batch = batch if schema == batch.schema else batch.cast(schema)
    return [(name, batch.filter(pc.equal(column, name))) for name in names]


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Polars' kinds of text and bytes as the older ones: Arrow cannot choose rows of those."""
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        value = kind.value_field.with_type(_without_views(kind.value_type))
        return pa.list_(value) if pa.types.is_list(kind) else pa.large_list(value)
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    return kind


class Parts:
    """The columns that were named, looked for in each batch's schema.

    A name that the caller left at its default may be missing, except the value's; any other must be there.
    """

    def __init__(self, key: str | None, value: str | None, headers: str | None, timestamp: str | None) -> None:
        self._optional = {"key": key, "headers": headers, "timestamp": timestamp}
        self._value = value

    def of(self, batch: pa.RecordBatch) -> Names:
        present = batch.schema.names
        found: dict[str, str | None] = {}
        for default, name in (*self._optional.items(), ("", self._value)):
            if name in present or name is None:
                found[default] = name
            elif name == default:
                found[default] = None
            else:
                raise ValueError(f"there is no column {name!r}, the data has {', '.join(map(repr, present))}")
        return Names(found["key"], found[""], found["headers"], found["timestamp"])
