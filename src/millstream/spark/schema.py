"""The columns, as Spark and as Arrow know them: those of Spark's Kafka source and sink, plus a time for writes."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from millstream.client.errors import BadOption

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType

_HEADERS: Final = ArrayType(StructType([StructField("key", StringType()), StructField("value", BinaryType())]))
_READ: Final = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
)
_WITH_HEADERS: Final = StructType([*_READ.fields, StructField("headers", _HEADERS)])

_LOG: Final = logging.getLogger("millstream.spark")
_BYTES: Final = (StringType, BinaryType)
_WRITTEN: Final[dict[str, tuple[type[DataType], ...]]] = {
    "key": _BYTES,
    "value": _BYTES,
    "headers": (ArrayType,),
    "topic": (StringType,),
    "partition": (IntegerType,),
    "timestamp": (TimestampType, TimestampNTZType, LongType),
}


def read_schema(*, include_headers: bool) -> StructType:
    """What a read gives."""
    return _WITH_HEADERS if include_headers else _READ


def arrow_schema(asked: StructType) -> pa.Schema:
    """The columns that `.schema(...)` asked for, or all: what is not asked for is not copied out of the batches."""
    import pyarrow as pa

    from millstream.arrow.schema import SCHEMA

    known = {field.name: field for field in _WITH_HEADERS.fields}
    fields = []
    for field in asked.fields:
        if field.name not in known:
            raise BadOption(f"a topic has no column {field.name!r}, it has {', '.join(known)}")
        wanted = known[field.name].dataType
        if field.dataType.simpleString() != wanted.simpleString():
            raise BadOption(f"column {field.name!r} is {wanted.simpleString()}, not {field.dataType.simpleString()}")
        fields.append(SCHEMA.field(field.name))
    return pa.schema(fields)


def spark_schema(columns: pa.Schema) -> pa.Schema:
    """The same columns as Spark wants them: times in microseconds, where the log has milliseconds, and its own names
    inside of lists."""
    import pyarrow as pa

    header = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    other = {"timestamp": pa.timestamp("us", tz="UTC"), "headers": pa.list_(pa.field("element", header))}
    return pa.schema([pa.field(field.name, other.get(field.name, field.type)) for field in columns])


def check_written(schema: StructType, topic: str | None) -> tuple[str, ...]:
    """The columns of the rows that a write looks at; BadOption if one is missing or is of a wrong type.

    A `timestamp` that is no time is left out: Spark's own sink never looks at it, so jobs that move over may have one.
    """
    kinds = {field.name: field.dataType for field in schema.fields}
    if "timestamp" in kinds and not isinstance(kinds["timestamp"], _WRITTEN["timestamp"]):
        kind = kinds.pop("timestamp").simpleString()
        _LOG.warning("the column 'timestamp' is a %s and no record's time: it is not written, the time is now", kind)
    if "value" not in kinds:
        raise BadOption(f"the rows have no column 'value', they have {', '.join(kinds)}")
    if topic is None and "topic" not in kinds:
        raise BadOption("no topic is given: set the option topic, or give the rows a column of this name")
    for name, fitting in _WRITTEN.items():
        if name in kinds and not isinstance(kinds[name], fitting):
            wanted = " or ".join(each.typeName() for each in fitting)
            raise BadOption(f"column {name!r} must be {wanted}, but is {kinds[name].simpleString()}")
    return tuple(name for name in _WRITTEN if name in kinds)
