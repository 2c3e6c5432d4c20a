"""Which partition each row goes to.

A key goes where Java's producer sends it, hashed natively over the column. Rows without one stick to a partition until
it has about a batch's worth and then move to the next ("sticky"), or take turns one by one ("round_robin"). Whoever has
a better idea names a column, or gives a function from (record batch, number of partitions) to a column of partitions;
where that has a null, the key decides.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from millstream.records import _scatter

if TYPE_CHECKING:
    from millstream.arrow.encoding import Rows

# What such a function gives may be an array of Arrow's, of NumPy's, or a list.
PartitionBy = str | Callable[[pa.RecordBatch, int], Any]
STICKY: Final = "sticky"
ROUND_ROBIN: Final = "round_robin"


class UnknownPartition(ValueError):
    """A row is for a partition that the topic did not have when it was last looked up."""


class Router:
    """Chooses partitions of one topic; keyless rows go on where the last batch ended."""

    def __init__(self, partitions: int, partition_by: PartitionBy, *, first: int, sticky_bytes: int) -> None:
        self.partitions = partitions
        self._partition_by = partition_by
        self._sticky_bytes = 1 if partition_by == ROUND_ROBIN else sticky_bytes
        self._current = first % partitions
        self._filled = 0

    def route(self, batch: pa.RecordBatch, rows: Rows) -> tuple[memoryview, memoryview]:
        """(order, starts): the rows of partition p are order[starts[p]:starts[p + 1]]."""
        chosen = memoryview(self._given(batch))
        if len(rows.key.ends):
            key = rows.key
            _scatter.partitions_of_keys(key.ends, key.data, key.valid, key.valid_at, self.partitions, chosen)
        self._current, self._filled = _scatter.spread(
            chosen, rows.value.ends, self.partitions, self._current, self._filled, self._sticky_bytes
        )
        starts = memoryview(array("i", bytes(4 * (self.partitions + 1))))
        order = memoryview(array("i", bytes(4 * batch.num_rows)))
        wrong = _scatter.group(chosen, starts, order)
        if wrong >= 0:
            raise UnknownPartition(f"row {wrong} is for partition {chosen[wrong]}, but there are {self.partitions}")
        return order, starts

    def _given(self, batch: pa.RecordBatch) -> array[int]:
        """The caller's choice for each row, -1 where there is none."""
        if self._partition_by in (STICKY, ROUND_ROBIN):
            return array("i", b"\xff" * (4 * batch.num_rows))
        if isinstance(self._partition_by, str):
            if self._partition_by not in batch.schema.names:
                present = ", ".join(map(repr, batch.schema.names))
                raise ValueError(f"there is no column {self._partition_by!r} to partition by, the data has {present}")
            column = batch.column(self._partition_by)
        else:
            column = self._partition_by(batch, self.partitions)
            if not isinstance(column, pa.Array | pa.ChunkedArray):
                # NumPy has no other word for null than NaN.
                column = pa.array(column, from_pandas=True)
            column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if len(column) != batch.num_rows:
                raise ValueError(f"the partitioner gave {len(column)} partitions for {batch.num_rows} rows")
        if pa.types.is_null(column.type):
            return array("i", b"\xff" * (4 * batch.num_rows))
        column = column.cast(pa.int32())
        if column.null_count < len(column) and (lowest := _lowest(column)) < 0:
            raise ValueError(f"a row is for partition {lowest}, which cannot be; null lets the key decide")
        filled = column.fill_null(-1) if column.null_count else column
        return array("i", filled.buffers()[1].to_pybytes())[filled.offset : filled.offset + len(filled)]


def _lowest(column: pa.Array) -> int:
    import pyarrow.compute as pc

    lowest: int = pc.min(column).as_py()
    return lowest
