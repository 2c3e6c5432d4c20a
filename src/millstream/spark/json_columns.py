"""Records whose values or keys are JSON, as columns: taken apart in the worker that has fetched them.

A decoder is compiled for the schema, and builds dictionaries of just the fields that are wanted; Arrow makes columns of
all of them at once. That costs about a microsecond for a record of three fields. Only where a batch has something
that does not go this way is it gone through record by record, to see which it is and why. Decimals always are: they
have to be rounded before Arrow sees them, since one like 1e-999999999 makes it crash.

What counts is what Spark's `from_json` says, in its strict forms: a field that is missing is null, one that the schema
does not have is ignored, a text may stand for whatever is there (a number's or an object's JSON), decimals are rounded.
A text where a number belongs is an error (but a decimal may be written as one, "12.50"; "NaN" is none), and so are a
fraction for an int and a timestamp without a time zone: nobody in a worker knows which zone the session has
(`timestamp_ntz` takes it as it stands). A null value is a tombstone, and all of its columns are null.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Required, TypedDict

import msgspec
import pyarrow as pa
from pyspark.sql import types as t

from millstream.arrow.schema import SCHEMA
from millstream.client.errors import BadOption, ClientError, partition_subject
from millstream.spark.formats import PARTS, RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.spark.ranges import Range

_LOG: Final = logging.getLogger("millstream.spark")
# Wide enough for Spark's largest decimals, of 38 digits.
_ROUNDING: Final = Context(prec=100, rounding=ROUND_HALF_UP)
# Leaves fractions as they are written: JSON has numbers of any size, a double has not.
_ANY_JSON: Final = msgspec.json.Decoder(float_hook=str)


def _whole(bits: int) -> Any:
    return Annotated[int, msgspec.Meta(ge=-(2 ** (bits - 1)), le=2 ** (bits - 1) - 1)]


# A text may be made of anything, so its decoder takes anything.
_SIMPLE: Final[dict[type[t.DataType], Any]] = {
    t.StringType: Any,
    t.BooleanType: bool,
    t.ByteType: _whole(8),
    t.ShortType: _whole(16),
    t.IntegerType: _whole(32),
    t.LongType: _whole(64),
    t.FloatType: float,
    t.DoubleType: float,
    t.DecimalType: Decimal,
    t.BinaryType: bytes,
    t.DateType: date,
    t.TimestampType: Annotated[datetime, msgspec.Meta(tz=True)],
    t.TimestampNTZType: Annotated[datetime, msgspec.Meta(tz=False)],
}


class BadRecord(ClientError):
    """A record is not the JSON that the schema says."""


@dataclass(frozen=True)
class JsonColumns:
    """The columns of a read, and where each comes from: the record itself, its value or its key."""

    schema: t.StructType
    origins: tuple[str, ...]
    drop: bool

    def fetched(self) -> pa.Schema:
        """What is to be read of the records; the offset for the sake of errors."""
        names = [field.name for field, origin in zip(self.schema.fields, self.origins, strict=True) if origin == RECORD]
        parts = [part for part in PARTS if part in self.origins]
        return pa.schema([SCHEMA.field(name) for name in dict.fromkeys((*names, *parts, "offset"))])

    def of(self, batches: Iterator[pa.RecordBatch], part: Range) -> Iterator[pa.RecordBatch]:
        """The columns of a task's records; what does not parse fails the task, or is left out and counted."""
        kinds = _arrow_schema(self.schema)
        seen, dropped, first = 0, 0, ""
        for batch in batches:
            columns, bad = self._columns(batch, kinds)
            if bad:
                at = min(bad)
                where = f"{partition_subject(part.topic, part.partition)} offset {batch['offset'][at].as_py()}"
                if not self.drop:
                    raise BadRecord(f"{where}: {bad[at]}")
                first = first or f"{where}: {bad[at]}"
                dropped += len(bad)
                columns = columns.filter(pa.array([row not in bad for row in range(batch.num_rows)]))
            seen += batch.num_rows
            if columns.num_rows:
                yield columns
        if dropped:
            _LOG.warning("%s of %s records were left out (on.error=drop), the first is %s", dropped, seen, first)

    def _columns(self, batch: pa.RecordBatch, kinds: pa.Schema) -> tuple[pa.RecordBatch, dict[int, str]]:
        """The batch as columns, and the rows that do not parse with the reason."""
        bad: dict[int, str] = {}
        fields: dict[str, Iterator[pa.Array]] = {RECORD: iter(())}
        for part in PARTS:
            if part not in self.origins:
                continue
            wanted = [place for place, origin in enumerate(self.origins) if origin == part]
            asked = t.StructType([self.schema.fields[place] for place in wanted])
            kind = pa.struct([kinds.field(place) for place in wanted])
            parsed, wrong = _parsed(batch[part], asked, kind)
            fields[part] = iter(parsed.flatten())
            bad = {row: f"the {part} {why}" for row, why in wrong.items()} | bad
        columns = []
        for place, origin in enumerate(self.origins):
            column = batch[kinds.field(place).name] if origin == RECORD else next(fields[origin])
            columns.append(column if column.type == kinds.field(place).type else column.cast(kinds.field(place).type))
        return pa.RecordBatch.from_arrays(columns, schema=kinds), bad


def check_type(field: t.StructField) -> None:
    """BadOption for a column that cannot be made of JSON here."""
    if not field.nullable:
        raise BadOption(f"column {field.name!r} is NOT NULL, but any record may lack it")
    try:
        _decoded_type(field.dataType)
    except TypeError as error:
        raise BadOption(
            f"column {field.name!r}: value.format=json makes no {error}; millstream.spark.typed(...) has Spark parse it"
        ) from None


def _parsed(texts: pa.Array, schema: t.StructType, kind: pa.StructType) -> tuple[pa.StructArray, dict[int, str]]:
    """JSON texts as structs, and which of them are none, with the reason."""
    read = _reader(schema)
    values = texts.to_pylist()
    if not _has_decimals(schema):
        try:
            return pa.array([None if value is None else read(value) for value in values], kind), {}
        except (ValueError, TypeError, RecursionError):
            pass
    rows: list[Any] = []
    bad: dict[int, str] = {}
    for row, value in enumerate(values):
        try:
            rows.append(None if value is None else _fitted(read(value), schema))
        except (ValueError, RecursionError) as error:
            rows.append(None)
            bad[row] = _reason(value, error)
    return pa.array(rows, kind), bad


def _reason(value: bytes, error: Exception) -> str:
    try:
        _ANY_JSON.decode(value)
    except msgspec.ValidationError:
        # An integer of thousands of digits: JSON, if not for anybody here.
        pass
    except (ValueError, RecursionError):
        return "is not JSON"
    return f"does not fit the schema: {error}"


@lru_cache(16)
def _arrow_schema(schema: t.StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


@lru_cache(16)
def _reader(schema: t.StructType) -> Callable[[bytes], Any]:
    """From a text to a dictionary of the fields that are wanted."""
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(_decoded_type(schema)).decode
    return decode


@lru_cache(16)
def _has_decimals(schema: t.StructType) -> bool:
    return _holds_decimals(schema)


def _holds_decimals(kind: t.DataType) -> bool:
    match kind:
        case t.DecimalType():
            return True
        case t.ArrayType():
            return _holds_decimals(kind.elementType)
        case t.MapType():
            return _holds_decimals(kind.valueType)
        case t.StructType():
            return any(_holds_decimals(field.dataType) for field in kind.fields)
    return False


def _decoded_type(kind: t.DataType) -> Any:
    """The type that a decoder is made for; TypeError for one that JSON does not become."""
    if type(kind) in _SIMPLE:
        return _SIMPLE[type(kind)]
    if isinstance(kind, t.ArrayType):
        return list[_or_null(kind.elementType, nullable=kind.containsNull)]  # type: ignore[misc]
    if isinstance(kind, t.MapType) and type(kind.keyType) is t.StringType:
        return dict[str, _or_null(kind.valueType, nullable=kind.valueContainsNull)]  # type: ignore[misc]
    if isinstance(kind, t.StructType):
        fields = {}
        for field in kind.fields:
            wanted = _or_null(field.dataType, nullable=field.nullable)
            fields[field.name] = wanted if field.nullable else Required[wanted]
        return TypedDict("Fields", fields, total=False)  # type: ignore[operator]
    raise TypeError(kind.simpleString())


def _or_null(kind: t.DataType, *, nullable: bool) -> Any:
    decoded = _decoded_type(kind)
    return decoded | None if nullable and decoded is not Any else decoded


def _fitted(value: Any, kind: t.DataType) -> Any:
    """A decoded value as Arrow takes it: what is to be a text is one, and decimals have their scale."""
    if value is None:
        return None
    match kind:
        case t.StringType():
            return value if isinstance(value, str) else msgspec.json.encode(value).decode()
        case t.DecimalType():
            return _rounded(value, kind)
        case t.ArrayType():
            return [_fitted(each, kind.elementType) for each in value]
        case t.MapType():
            return {name: _fitted(each, kind.valueType) for name, each in value.items()}
        case t.StructType():
            return {field.name: _fitted(value.get(field.name), field.dataType) for field in kind.fields}
    return value


def _rounded(value: Decimal, kind: t.DecimalType) -> Decimal:
    try:
        rounded = _ROUNDING.quantize(value, Decimal(1).scaleb(-kind.scale))
    except InvalidOperation:
        rounded = None
    if rounded is None or not rounded.is_finite() or len(rounded.as_tuple().digits) > kind.precision:
        raise ValueError(f"{value} is no {kind.simpleString()}")
    return rounded
