"""Record headers as a column of lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.arrow.schema import HEADER, SCHEMA

if TYPE_CHECKING:
    from millstream.arrow.decoding import ColumnOfBytes


def header_array(rows: int, lists: ColumnOfBytes, names: ColumnOfBytes, contents: ColumnOfBytes) -> pa.Array:
    """The column; null where a record has none."""
    kind = SCHEMA.field("headers").type
    if lists.nulls == rows:
        return pa.nulls(rows, kind)
    pairs = pa.StructArray.from_arrays(
        [_text(names.array(pa.binary())), contents.array(pa.binary())], fields=list(HEADER)
    )
    validity = lists.validity if lists.nulls else None
    return pa.Array.from_buffers(kind, rows, [validity, lists.ends], null_count=lists.nulls, children=[pairs])


def _text(names: pa.Array) -> pa.Array:
    """Header names are meant to be UTF-8. Where one is not, what cannot be read is replaced, as Java does."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], pa.string())
