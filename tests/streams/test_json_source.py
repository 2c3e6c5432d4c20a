"""JSON that is taken apart where it is fetched: the fields that operators look at, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest

from millstream.streams import StreamsBuilder, Topology, col, concat, struct, sum_of, value
from millstream.streams.lower.native.json_source import BadValue, JsonFields
from millstream.streams.lower.native.pruning import json_fields, schema_of
from millstream.streams.lower.subtopologies import subtopologies

NUMBER_AND_TEXT = JsonFields((("cents", "bigint"), ("user", "string")))


@dataclass
class Click:
    user: str
    cents: int
    price: float
    tags: list[str]


def taken_apart(fields: JsonFields, *values: bytes | None) -> list[object]:
    batch = pa.record_batch({"offset": list(range(len(values))), "value": pa.array(values, pa.binary())})
    found = fields.taken_apart(batch)
    assert found.schema.names == ["offset", "value"]
    return list(found.column("value").to_pylist())


def test_fields_are_read_and_what_is_missing_is_null() -> None:
    found = taken_apart(NUMBER_AND_TEXT, b'{"user": "ada", "other": [1], "cents": 3}', None, b"{}", b'{"cents": null}')
    assert found == [{"cents": 3, "user": "ada"}, None, *[{"cents": None, "user": None}] * 2]
    assert taken_apart(JsonFields((("price", "double"),)), b'{"price": 3}') == [{"price": 3.0}]


@pytest.mark.parametrize("wrong", [b'{"cents": "3"}', b'{"cents": 3', b"", b"[]", b'{"user": 3}'])
def test_a_value_that_does_not_fit_fails_and_is_shown(wrong: bytes) -> None:
    with pytest.raises(BadValue, match=r"Expected|truncated|malformed") as failure:
        taken_apart(NUMBER_AND_TEXT, b'{"cents": 1}', wrong)
    assert str(failure.value).startswith(repr(wrong))


def fields(builder: StreamsBuilder) -> tuple[tuple[str, str], ...]:
    topology: Topology = builder.build()
    (part, *_) = subtopologies(topology.plan)
    return json_fields(topology.plan, part)


def test_what_operators_look_at_is_known() -> None:
    builder = StreamsBuilder(key=str, value=Click)
    cheap = builder.stream("clicks").filter(col("cents") < 9)
    cheap.map_values(concat(col("user"), "!"), value=str).to("names")
    cheap.group_by_key().agg(total=sum_of(col("price") * 2)).to_stream().to("sums")
    found = fields(builder)
    assert found == (("cents", "bigint"), ("user", "string"), ("price", "double"))
    assert schema_of(("key", "value"), found[:1]) == "key binary, value struct<`cents`:bigint>"


def test_where_more_is_needed_spark_reads_the_values() -> None:
    passed_on = StreamsBuilder(key=str, value=Click)
    passed_on.stream("clicks").filter(col("cents") < 9).to("cheap")
    assert fields(passed_on) == ()
    whole = StreamsBuilder(key=str, value=Click)
    whole.stream("clicks").map_values(struct(all=value())).to("wrapped")
    assert fields(whole) == ()
    nested = StreamsBuilder(key=str, value=Click)
    nested.stream("clicks").filter(col("tags").is_not_null()).group_by_key().count().to_stream().to("counts")
    assert fields(nested) == ()
    text = StreamsBuilder(key=str, value=str)
    text.stream("clicks").filter(value() != "x").group_by_key().count().to_stream().to("counts")
    assert fields(text) == ()
