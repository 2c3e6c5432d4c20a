"""Serdes as columns: bytes to typed values and back, without Python.

Spark has no function for Java's numbers as bytes, but it has hexadecimal, and it can call Java. Where a value does not
fit its serde, the query fails with a sentence that says so, as the driver does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.streams.serdes import BytesSerde, JsonSerde, NumberSerde, StringSerde, TimeWindowedSerde
from millstream.streams.types import ANY, BOOLEAN, DOUBLE, INT, LONG, NULL, TIMESTAMP, Array, DataType, Map, Struct

if TYPE_CHECKING:
    from pyspark.sql import Column

    from millstream.streams.serdes import Serde

_NUMBERS = (INT, LONG, DOUBLE)


def spark_type(kind: DataType) -> str:
    """A type as Spark writes it. A time is milliseconds as a number, as in a record."""
    match kind:
        case Struct():
            return "struct<" + ",".join(f"`{name}`:{spark_type(each)}" for name, each in kind.fields) + ">"
        case Array():
            return f"array<{spark_type(kind.element)}>"
        case Map():
            return f"map<{spark_type(kind.key)},{spark_type(kind.value)}>"
    return "bigint" if kind == TIMESTAMP else "string" if kind == NULL else kind.name


def has_schema(kind: DataType) -> bool:
    """Whether all of a type is known: what has none cannot be a column."""
    match kind:
        case Struct():
            return all(has_schema(each) for _, each in kind.fields)
        case Array():
            return has_schema(kind.element)
        case Map():
            return has_schema(kind.key) and has_schema(kind.value)
    return kind != ANY


def is_native(serde: Serde) -> bool:
    """Whether Spark can read and write it."""
    match serde:
        case StringSerde() | BytesSerde():
            return True
        case NumberSerde():
            return serde.type in _NUMBERS
        case JsonSerde():
            return serde.type == BOOLEAN or (isinstance(serde.type, Struct) and has_schema(serde.type))
        case TimeWindowedSerde():
            return is_native(serde.inner)
    return False


def decode(data: Column, serde: Serde) -> Column:
    """Bytes to a value; null stays null."""
    from pyspark.sql import functions as f

    match serde:
        case StringSerde():
            return f.make_valid_utf8(data.cast("string"))
        case NumberSerde():
            return _decode_number(data, serde)
        case JsonSerde() if serde.type == BOOLEAN:
            return data.cast("string").cast("boolean")
        case JsonSerde():
            return f.from_json(data.cast("string"), spark_type(serde.type), {"mode": "FAILFAST"})
        case TimeWindowedSerde():
            start = f.substring(data, f.length(data) - 7, f.lit(8))
            inner = f.substring(data, f.lit(1), f.length(data) - 8)
            return windowed(decode(inner, serde.inner), _decode_number(start, _LONG), serde.size_ms)
    return data


def encode(value: Column, serde: Serde) -> Column:
    """A value to bytes; null stays null."""
    from pyspark.sql import functions as f

    match serde:
        case StringSerde():
            return value.cast("string").cast("binary")
        case NumberSerde() if serde.type == DOUBLE:
            return _encode_number(_java_double("doubleToLongBits", value.cast("double")).cast("bigint"), 8)
        case NumberSerde():
            return _encode_number(value, 4 if serde.type == INT else 8)
        case JsonSerde() if serde.type == BOOLEAN:
            return value.cast("string").cast("binary")
        case JsonSerde():
            cast = value.cast(spark_type(serde.type))
            return f.to_json(cast, {"ignoreNullFields": "false"}).cast("binary")
        case TimeWindowedSerde():
            return f.concat(encode(value["key"], serde.inner), _encode_number(value["window"]["start_ms"], 8))
    return value


def windowed(key: Column, start_ms: Column, size_ms: int) -> Column:
    """A key in a window, as expressions name its parts."""
    from pyspark.sql import functions as f

    window = f.struct(start_ms.alias("start_ms"), (start_ms + f.lit(size_ms)).alias("end_ms"))
    return f.struct(key.alias("key"), window.alias("window"))


def changelog_key(key: Column, serde: Serde, start_ms: Column | None) -> Column:
    """A store's key as Kafka Streams' changelog has it; a window's has a number behind, here always 0."""
    from pyspark.sql import functions as f

    plain = encode(key, serde)
    return plain if start_ms is None else f.concat(plain, _encode_number(start_ms, 8), f.unhex(f.lit("00000000")))


_LONG = NumberSerde("long", ">q", LONG)


def _encode_number(value: Column, size: int) -> Column:
    from pyspark.sql import functions as f

    digits = f.lpad(f.hex(value.cast("bigint")), 16, "0")
    return f.unhex(digits if size == 8 else f.substring(digits, 9, 8))


def _java_double(method: str, value: Column) -> Column:
    """A double's bits, by Java's own method: Spark has no function for them. It answers with text, which is exact."""
    from pyspark.sql import functions as f

    return f.when(value.isNotNull(), f.java_method(f.lit("java.lang.Double"), f.lit(method), value))


def _decode_number(data: Column, serde: NumberSerde) -> Column:
    from pyspark.sql import functions as f

    size = 4 if serde.type == INT else 8
    number = f.conv(f.hex(data), 16, -10).cast("bigint")
    if size == 4:
        number = f.shiftright(f.shiftleft(number, 32), 32).cast("int")
    if serde.type == DOUBLE:
        number = _java_double("longBitsToDouble", number).cast("double")
    wrong = f.concat(f.length(data).cast("string"), f.lit(f" bytes are no {serde.name}"))
    return f.when(f.length(data) == size, number).when(data.isNotNull(), f.raise_error(wrong).cast(serde.type.name))
