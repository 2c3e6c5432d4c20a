"""The data source with values that are JSON already taken apart: of each value the fields that somebody looks at.

Where the source's schema says that `value` is a struct, each value is read as JSON, in the worker that has fetched it,
and its fields are checked against the struct's types. Spark's own `from_json` makes a reader with buffers of its own
for every value: with it a record of 80 bytes and three fields cost 2.4 microseconds of processor time more. A field
that is missing is null; one of another type fails the query, as in the test driver.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import msgspec
import pyarrow as pa

from millstream.spark.source import MillstreamDataSource
from millstream.spark.stream_reader import StreamReader
from millstream.streams.types import BOOLEAN, DOUBLE, INT, LONG, STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

    from millstream.spark.options import ReadOptions

FORMAT: Final = "millstream-json"
KINDS: Final = (STRING, LONG, INT, DOUBLE, BOOLEAN)
_TYPES: Final[dict[str, tuple[type, pa.DataType]]] = {
    "string": (str, pa.string()),
    "bigint": (int, pa.int64()),
    "int": (int, pa.int32()),
    "double": (float, pa.float64()),
    "boolean": (bool, pa.bool_()),
}


class BadValue(ValueError):
    """A value is not the JSON that its schema says."""


@dataclass(frozen=True)
class JsonFields:
    """Names and types, as Spark calls them, of the fields that are wanted."""

    fields: tuple[tuple[str, str], ...]

    @property
    def type(self) -> pa.DataType:
        return pa.struct([(name, _TYPES[kind][1]) for name, kind in self.fields])

    def taken_apart(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its values as structs; null stays null."""
        at = batch.schema.get_field_index("value")
        column = batch.column(at)
        read = _reader(self.fields)
        values = column.to_pylist()
        try:
            if column.null_count:
                rows = [None if value is None else read(value) for value in values]
            else:
                rows = [read(value) for value in values]
        except msgspec.DecodeError as wrong:
            raise BadValue(f"{_first_bad(values, read)!r}: {wrong}") from None
        arrays = [
            pa.array([None if row is None else row[number] for row in rows], _TYPES[kind][1])
            for number, (_, kind) in enumerate(self.fields)
        ]
        mask = column.is_null() if column.null_count else None
        struct = pa.StructArray.from_arrays(arrays, fields=list(self.type), mask=mask)
        return batch.set_column(at, pa.field("value", self.type), struct)


@lru_cache(16)
def _reader(fields: tuple[tuple[str, str], ...]) -> Callable[[bytes], tuple[Any, ...]]:
    """A value to its fields."""
    wanted: Any = [
        (f"f{number}", _TYPES[kind][0] | None, msgspec.field(name=name, default=None))
        for number, (name, kind) in enumerate(fields)
    ]
    # Any: which fields it has is not known before.
    decode: Any = msgspec.json.Decoder(msgspec.defstruct("Value", wanted, gc=False)).decode
    if len(fields) == 1:
        return lambda value: (decode(value).f0,)
    take: Any = attrgetter(*(name for name, _, _ in wanted))
    return lambda value: take(decode(value))


def _first_bad(values: list[bytes | None], read: Callable[[bytes], Any]) -> bytes:
    """The value that cannot be read, as much of it as says enough."""
    for value in values:
        try:
            read(value or b"{}")
        except msgspec.DecodeError:
            return (value or b"")[:100]
    return b""


class JsonDataSource(MillstreamDataSource):
    """`spark.readStream.format("millstream-json")`, with a schema in which `value` is a struct."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamReader(self, schema: StructType) -> JsonStreamReader:  # noqa: N802  # Spark's name
        from pyspark.sql.types import BinaryType, StructField
        from pyspark.sql.types import StructType as Columns

        from millstream.spark.options import parse_read
        from millstream.spark.schema import arrow_schema

        plain = [StructField("value", BinaryType()) if each.name == "value" else each for each in schema.fields]
        value: Any = schema["value"].dataType
        fields = JsonFields(tuple((each.name, each.dataType.simpleString()) for each in value.fields))
        return JsonStreamReader(parse_read(self.options, streaming=True), arrow_schema(Columns(plain)), fields)


class JsonStreamReader(StreamReader):
    """A streaming read whose tasks take the values apart."""

    def __init__(self, options: ReadOptions, schema: pa.Schema, fields: JsonFields) -> None:
        super().__init__(options, schema)
        self._fields = fields

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for batch in super().read(partition):
            yield self._fields.taken_apart(batch)
