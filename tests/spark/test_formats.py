"""`value.format=json` in the source: which columns come from where, and what each record becomes."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql import types as t

from millstream.client.errors import BadOption
from millstream.spark.formats import RECORD, names_in, parse_formats
from millstream.spark.json_columns import BadRecord
from millstream.spark.options import parse_read
from millstream.spark.ranges import Range

if TYPE_CHECKING:
    from millstream.spark.formats import Formats

PLACE = Range("orders", "id", 2, 0, 100)
LONG, TEXT = t.LongType(), t.StringType()


def formats(**options: str) -> Formats:
    found = parse_formats({name.replace("_", "."): value for name, value in options.items()})
    assert found is not None
    return found


def schema(**columns: t.DataType) -> t.StructType:
    return t.StructType([t.StructField(name, kind) for name, kind in columns.items()])


def rows(columns: t.StructType, values: list[bytes | None], *, first: int = 0, **options: str) -> list[dict[str, Any]]:
    """What a task makes of these values."""
    found = formats(**{"value_format": "json", **options}).columns(columns)
    batch = pa.record_batch(
        {"value": pa.array(values, pa.binary()), "offset": pa.array(range(first, first + len(values)), pa.int64())}
    )
    return [row for batch in found.of(iter([batch]), PLACE) for row in batch.to_pylist()]


def test_names_are_found_in_a_schemas_text() -> None:
    text = "a int, `b, c` string COMMENT 'x, y', d:array<struct<e:int,f:decimal(3,1)>>,g  decimal(10, 2) NOT NULL"
    assert list(names_in(text)) == ["a", "b, c", "d", "g"]


def test_without_a_schema_the_parts_are_replaced_by_their_fields() -> None:
    found = formats(value_format="json", value_schema="order bigint, timestamp string")
    assert found.ddl(include_headers=False) == (
        "`key` binary, order bigint, timestamp string, `topic` string, `partition` int, `offset` bigint, "
        "`timestampType` int"
    )
    with pytest.raises(BadOption, match=r"needs columns: name them with \.schema"):
        formats(value_format="json").ddl(include_headers=False)


def test_a_column_of_the_records_name_and_type_is_the_records() -> None:
    columns = formats(value_format="JSON").columns(schema(order=LONG, offset=LONG, key=t.BinaryType()))
    assert columns.origins == ("value", RECORD, RECORD)
    assert columns.fetched().names == ["offset", "key", "value"]
    both = formats(value_format="json", key_format="json", key_schema="shop int")
    assert both.columns(schema(shop=t.IntegerType(), order=LONG)).origins == ("key", "value")
    named = formats(value_format="json", value_schema="timestamp string")
    assert named.columns(schema(timestamp=TEXT)).origins == ("value",)


@pytest.mark.parametrize(
    ("options", "columns", "said"),
    [
        ({"value.format": "json"}, schema(timestamp=TEXT), "name it in value.schema too"),
        ({"value.format": "json", "key.format": "json"}, schema(a=LONG), "key.schema must say"),
        ({"value.format": "json", "value.schema": "a int"}, schema(b=LONG), "there is no column 'b'"),
        ({"value.format": "json"}, t.StructType([t.StructField("a", LONG, nullable=False)]), "NOT NULL"),
        ({"value.format": "json"}, schema(a=t.DayTimeIntervalType()), "makes no interval"),
        ({"value.format": "avro"}, schema(), "value.format is json"),
        ({"value.schema": "a int"}, schema(), "no meaning without value.format"),
        ({"on.error": "drop"}, schema(), "no meaning without"),
        ({"value.format": "json", "on.error": "skip"}, schema(), "on.error is fail, drop or dead_letter"),
        ({"value.format": "json", "ON.ERROR": "dead-letter"}, schema(), "millstream.spark.read_typed"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, str], columns: t.StructType, said: str) -> None:
    def read() -> None:
        found = parse_formats(options)
        assert found is not None
        found.columns(columns)

    with pytest.raises(BadOption) as refusal:
        read()
    assert said in str(refusal.value)


def test_the_source_knows_the_options() -> None:
    given = {"kafka.bootstrap.servers": "a:1", "subscribe": "a", "value.format": "json", "on.error": "drop"}
    assert parse_read(given, streaming=True).selection.names == ("a",)


def test_fields_become_columns_and_what_is_missing_is_null() -> None:
    columns = schema(order=LONG, city=TEXT)
    found = rows(columns, [b'{"order": 1, "city": "Cork"}', b'{"order": 2, "other": [1]}', None])
    assert found == [{"order": 1, "city": "Cork"}, {"order": 2, "city": None}, {"order": None, "city": None}]


def test_every_type_is_made_as_spark_would() -> None:
    columns = schema(
        text=TEXT,
        price=t.DecimalType(6, 2),
        day=t.DateType(),
        at=t.TimestampType(),
        local=t.TimestampNTZType(),
        lines=t.ArrayType(schema(sku=TEXT, n=t.IntegerType())),
        tags=t.MapType(TEXT, t.DoubleType()),
        data=t.BinaryType(),
    )
    value = b"""{"text": {"a": 1}, "price": 12.345, "day": "2026-01-02", "at": "2026-01-02T03:04:05+01:00",
        "local": "2026-01-02T03:04:05", "lines": [{"sku": 7, "n": 1}, null], "tags": {"x": 1}, "data": "AAE="}"""
    assert rows(columns, [value]) == [
        {
            "text": '{"a":1}',
            "price": Decimal("12.35"),
            "day": date(2026, 1, 2),
            "at": datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC),
            "local": datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001  # that is the point of it
            "lines": [{"sku": "7", "n": 1}, None],
            "tags": [("x", 1.0)],
            "data": b"\x00\x01",
        }
    ]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"{not json", "the value is not JSON"),
        (b'[{"order": 1}', "the value is not JSON"),
        (b"", "the value is not JSON"),
        (b'{"city": "\xff"}', "the value is not JSON"),
        (b'{"order": "seven"}', r"the value does not fit the schema: Expected `int . null`, got `str` - at `\$.order`"),
        (b'{"order": 9223372036854775808}', "the value does not fit the schema"),
        (b"12", "the value does not fit the schema"),
    ],
)
def test_a_record_that_does_not_parse_fails_with_its_place(value: bytes, why: str) -> None:
    with pytest.raises(BadRecord, match=f"topic 'orders' partition 2 offset 8: {why}"):
        rows(schema(order=LONG, city=TEXT), [b'{"order": 1}', value], first=7)


@pytest.mark.parametrize(
    ("written", "read"),
    [("1e-999999999", "0.00"), ("12.345", "12.35"), ('"12.5"', "12.50"), ("-7", "-7.00"), ("0e999999999", "0.00")],
)
def test_a_decimal_is_rounded_at_any_depth_before_arrow_sees_it(written: str, read: str) -> None:
    kind = t.DecimalType(10, 2)
    columns = schema(d=kind, lines=t.ArrayType(schema(m=t.MapType(TEXT, kind))))
    value = b'{"d": %b, "lines": [{"m": {"x": %b}}]}' % (written.encode(), written.encode())
    assert rows(columns, [value]) == [{"d": Decimal(read), "lines": [{"m": [("x", Decimal(read))]}]}]
    nested = t.StructType(columns.fields[1:])
    assert rows(nested, [value]) == [{"lines": [{"m": [("x", Decimal(read))]}]}]


@pytest.mark.parametrize(
    "written",
    ["1e999999999", '"NaN"', '"sNaN"', '"-Infinity"', '"x"', "123456789", "1e99999999999999999999", "9" * 5000],
    ids=lambda written: written[:12],
)
def test_what_is_no_such_decimal_is_json_that_does_not_fit(written: str) -> None:
    with pytest.raises(BadRecord, match="offset 0: the value does not fit the schema: "):
        rows(schema(d=t.DecimalType(10, 2)), [b'{"d": %b}' % written.encode()])


def test_a_number_that_no_double_can_hold_is_json_still() -> None:
    with pytest.raises(BadRecord, match="does not fit the schema: Number out of range"):
        rows(schema(x=t.DoubleType()), [b'{"x": 1e999}'])


def test_a_record_is_dropped_and_counted_if_told_so(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "millstream.spark")
    found = rows(schema(order=LONG), [b'{"order": 1}', b"x", b"12", b'{"order": 2}'], on_error="drop")
    assert found == [{"order": 1}, {"order": 2}]
    assert "2 of 4 records were left out" in caplog.text
    assert "offset 1: the value is not JSON" in caplog.text
