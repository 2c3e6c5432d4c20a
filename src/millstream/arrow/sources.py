"""What can be written, cut into record batches, and which of their columns are a record's parts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from millstream.arrow.columns import plain, without_views
from millstream.arrow.cutting import pieces_of_views
from millstream.arrow.encoding import Names

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


def split_by_topic(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The rows of each topic that the column `topic` names, in the order they have; a topic may come several times."""
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
        yield names[0], batch
        return
    schema = pa.schema([field.with_type(without_views(field.type)) for field in batch.schema])
    start = 0
    for piece in pieces_of_views(batch):
        topics = column.slice(start, piece.num_rows)
        start += piece.num_rows
        rows = piece if schema == piece.schema else piece.cast(schema)
        for name in topics.unique().to_pylist():
            yield name, rows.filter(pc.equal(topics, name))


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
