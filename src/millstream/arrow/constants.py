"""Columns that say the same in every row: topic, partition and kind of timestamp of one partition's answer.

They are made once, in the largest size that was asked for so far, and sliced: all batches share the buffers. Nothing
here goes through `pa.scalar` or `pa.array`, which would import pandas where it is installed and cost half a second.
"""

from __future__ import annotations

from array import array

import pyarrow as pa


class Constants:
    """The columns made so far, by their value."""

    def __init__(self) -> None:
        self._made: dict[str | int, pa.Array] = {}

    def text(self, value: str, rows: int) -> pa.Array:
        made = self._made.get(value)
        if made is None or len(made) < rows:
            encoded, size = value.encode(), _rounded(rows)
            ends = array("i", range(0, len(encoded) * size + 1, len(encoded)) if encoded else [0] * (size + 1))
            buffers = [None, pa.py_buffer(ends), pa.py_buffer(encoded * size)]
            made = self._made[value] = pa.Array.from_buffers(pa.string(), size, buffers, null_count=0)
        return made.slice(0, rows)

    def int32(self, value: int, rows: int) -> pa.Array:
        made = self._made.get(value)
        if made is None or len(made) < rows:
            size = _rounded(rows)
            buffers = [None, pa.py_buffer(array("i", [value]) * size)]
            made = self._made[value] = pa.Array.from_buffers(pa.int32(), size, buffers, null_count=0)
        return made.slice(0, rows)


def _rounded(rows: int) -> int:
    """The next power of two: answers differ a little in size, and few of them should make a new column."""
    return 1 << max(rows - 1, 1).bit_length()
