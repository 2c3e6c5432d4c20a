"""Values and keys with a schema: JSON becomes columns, parsed by Spark itself.

    orders = millstream.spark.typed(records, value="order bigint, city string, euros double").rows

What does not parse is decided by the user: `on_error="fail"` ends the query with the record's topic, partition and
offset; `"drop"` leaves it out and counts it (in each batch's progress, and in `progress.py`'s table and metrics);
`"dead_letter"` leaves it out too, and `dead_letters` has those records as they came, with the reason in their headers,
ready to be written to a topic of their own by a query of their own.

Everything is Spark's own expressions; no record passes through Python. Spark's parser stops after the first JSON value
of a text; that nothing comes after it is found out here, so that what comes after is not lost in silence. A null value
is no error: it is a tombstone, and all of its columns are null.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from millstream.spark.formats import OPTIONS, PARTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructType

OnError = Literal["fail", "drop", "dead_letter"]

KEPT: Final = ("topic", "partition", "offset", "timestamp")
# The name under which dropped records are counted, in a progress's observed metrics.
COUNTED: Final = "millstream-values"
REASON_HEADER: Final = "millstream.error.reason"
TOPIC_HEADER: Final = "millstream.error.topic"
PARTITION_HEADER: Final = "millstream.error.partition"
OFFSET_HEADER: Final = "millstream.error.offset"

_BAD: Final = "millstream bad"
_ALL: Final = "all"
_PARSED: Final = "millstream parsed "


@dataclass(frozen=True, slots=True)
class Typed:
    """Records as columns, and the records that could not be."""

    rows: DataFrame
    dead_letters: DataFrame | None


def typed(
    records: DataFrame,
    value: str | StructType | None = None,
    *,
    key: str | StructType | None = None,
    on_error: OnError = "fail",
    keep: Iterable[str] = KEPT,
    name: str = "",
) -> Typed:
    """Turn records into columns: those of the value's schema, then the key's, then what is kept of the record.

    A schema is a StructType or its text ("order bigint, city string"). A part without one stays as it is, if it is
    kept. `name` tells several of these in one query apart where dropped records are counted.
    """
    from pyspark.sql import functions as f

    if on_error not in ("fail", "drop", "dead_letter"):
        raise ValueError(f"on_error is 'fail', 'drop' or 'dead_letter', not {on_error!r}")
    schemas = {part: _schema(given) for part, given in zip(PARTS, (value, key), strict=True) if given is not None}
    if not schemas:
        raise ValueError("give a schema for the value, or for the key")
    kept = [column for column in keep if column in records.columns]
    _check_names(schemas, kept)
    parsed, reasons = records, []
    for part, schema in schemas.items():
        parsed = parsed.withColumn(_PARSED + part, _from_json(f.col(part), schema))
        reasons.append(_reason(part, schema))
    parsed = parsed.withColumn(_BAD, f.coalesce(*reasons))
    columns = [
        f.col(f"`{_PARSED + part}`.{_ALL}.`{field.name}`").alias(field.name)
        for part, schema in schemas.items()
        for field in schema.fields
    ]
    good = f.col(f"`{_BAD}`").isNull()
    if on_error == "fail":
        rows = parsed.where(good | _failure())
    else:
        counted = f.count_if(~good).alias("dropped")
        rows = parsed.observe(COUNTED + (f"-{name}" if name else ""), counted).where(good)
    return Typed(
        rows.select(*columns, *[f.col(column) for column in kept]),
        _dead_letters(parsed, ~good) if on_error == "dead_letter" else None,
    )


def read_typed(spark: SparkSession, options: Mapping[str, Any], *, streaming: bool = True) -> Typed:
    """The same with everything in options, as they stand in a configuration file.

    `value.format` and `key.format` (json), `value.schema` and `key.schema`, `on.error`; all others are the source's.
    Names are taken in any letter case, as Spark takes those of its own.
    """
    own = {name.lower(): str(value) for name, value in options.items() if name.lower() in OPTIONS}
    left = {name: value for name, value in options.items() if name.lower() not in OPTIONS}
    schemas: dict[str, str] = {}
    for part in PARTS:
        form, schema = own.get(f"{part}.format"), own.get(f"{part}.schema")
        if form is not None and form.strip().lower() != "json":
            raise ValueError(f"{part}.format is json, or left out, not {form!r}")
        if (form is None) != (schema is None):
            raise ValueError(f"{part}.format and {part}.schema go together")
        if schema is not None:
            schemas[part] = schema
    on_error: Any = own.get("on.error", "fail").strip().lower().replace("-", "_")
    reader = spark.readStream if streaming else spark.read
    records = reader.format("millstream").options(**left).load()
    return typed(records, schemas.get("value"), key=schemas.get("key"), on_error=on_error)


def _schema(given: str | StructType) -> StructType:
    from pyspark.sql.types import StructType

    if not isinstance(given, str):
        return given
    schema = StructType.fromDDL(given)
    if not isinstance(schema, StructType):
        raise TypeError(f"a schema names columns, such as 'order bigint, city string', and {given!r} does not")
    return schema


def _check_names(schemas: Mapping[str, StructType], kept: list[str]) -> None:
    owners = dict.fromkeys(kept, "the record")
    for part, schema in schemas.items():
        for field in schema.fields:
            if field.name in owners:
                raise ValueError(
                    f"{field.name!r} is a column of the {part} and of {owners[field.name]}: "
                    "rename it in the schema, or leave it out of keep"
                )
            owners[field.name] = f"the {part}"


def _from_json(text: Column, schema: StructType) -> Column:
    """A struct of the columns, in a struct with what did not parse. See `_is_alone` for what the object around does."""
    from pyspark.sql import functions as f
    from pyspark.sql.types import StringType, StructField, StructType

    around = StructType([StructField(_ALL, schema), StructField(_BAD, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _BAD}
    return f.from_json(_in_object(text.cast("string")), around, options)


def _reason(part: str, schema: StructType) -> Column:
    """Why a part did not parse, null if it did."""
    from pyspark.sql import functions as f

    text = f.col(part).cast("string")
    parsed = f.col(f"`{_PARSED + part}`")
    given = f.col(part).isNotNull()
    # JSON's null is no struct, and no error to Spark.
    failed = given & (parsed[_ALL].isNull() | parsed[_BAD].isNotNull())
    no_json, fits_not = f"the {part} is not JSON", f"the {part} does not fit the schema {schema.simpleString()}"
    is_json = (f.json_array_length(_in_array(text)) == 1) & (f.size(f.json_object_keys(_in_object(text))) == 1)
    why = f.when(is_json, f.lit(fits_not)).otherwise(f.lit(no_json))
    return f.when(failed, why).when(given & ~_is_alone(text), f.lit(no_json))


def _is_alone(text: Column) -> Column:
    """Whether nothing comes after the object that a text begins with, if it could be parsed in an object.

    Where the first brace that closes is the last character, nothing can. Else the text must be the only element of an
    array too: a comma makes a second element, `]` does not end the object, nor `}` the array, and anything else fits
    into neither. The first function is the faster one; the second takes for JSON what the parse does (NaN).
    """
    from pyspark.sql import functions as f

    array = _in_array(text)
    parsed = f.from_json(array, f"array<struct<`{_BAD}`: boolean>>")
    elements = f.coalesce(f.json_array_length(array), f.size(parsed), f.lit(0))
    return (f.instr(text, "}") == f.length(text)) | (elements == 1)


def _in_array(text: Column) -> Column:
    from pyspark.sql import functions as f

    return f.concat(f.lit("["), text, f.lit("]"))


def _in_object(text: Column) -> Column:
    from pyspark.sql import functions as f

    return f.concat(f.lit(f'{{"{_ALL}":'), text, f.lit("}"))


def _failure() -> Column:
    """Ends the query with a sentence that says where the record is."""
    from pyspark.sql import functions as f

    where = f.format_string(
        "topic '%s' partition %d offset %d: %s", f.col("topic"), f.col("partition"), f.col("offset"), f.col(f"`{_BAD}`")
    )
    return f.raise_error(where).cast("boolean")


def _dead_letters(parsed: DataFrame, bad: Column) -> DataFrame:
    from pyspark.sql import functions as f

    def header(name: str, content: Column) -> Column:
        return f.struct(f.lit(name).alias("key"), content.cast("string").cast("binary").alias("value"))

    added = f.array(
        header(REASON_HEADER, f.col(f"`{_BAD}`")),
        header(TOPIC_HEADER, f.col("topic")),
        header(PARTITION_HEADER, f.col("partition")),
        header(OFFSET_HEADER, f.col("offset")),
    )
    if "headers" in parsed.columns:
        added = f.when(f.col("headers").isNull(), added).otherwise(f.concat(f.col("headers"), added))
    return parsed.where(bad).select("key", "value", "timestamp", added.alias("headers"))
