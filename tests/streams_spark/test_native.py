"""Spark's own operators give what the test driver gives, over twenty ways of cutting the records into micro-batches.

No topics here: a micro-batch is a DataFrame, and what is written is collected. Tables are compared by the last value of
each key, since Spark sends one change for each key and micro-batch, where the driver sends one for each record.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from millstream.streams import (
    StreamsBuilder,
    Topology,
    col,
    concat,
    count_of,
    function,
    hopping,
    key,
    left,
    max_of,
    min_of,
    right,
    struct,
    sum_of,
    timestamp,
    tumbling,
    value,
    when,
    window_start,
)
from millstream.streams.lower.native.engine import NativeEngine
from millstream.streams.lower.native.supported import why_not
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.settings import settings_of
from millstream.streams.types import LONG as _LONG
from tests.streams_spark.cutting import Cuts, as_stream, as_table

if TYPE_CHECKING:
    import random

    import pytest
    from pyspark.sql import DataFrame, SparkSession

    from tests.streams.memory_topics import Line, Stored

_RECORDS = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.timestamp("us", tz="UTC")),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


@dataclass
class Order:
    item: str
    cents: int


class Batches:
    """A native sub-topology, given micro-batches as DataFrames."""

    def __init__(self, spark: SparkSession, topology: Topology) -> None:
        (part,) = subtopologies(topology.plan)
        assert why_not(topology.plan, part) is None
        self._spark = spark
        self._engine = NativeEngine(topology.plan, part, settings_of("app", "nowhere:1", {}))
        self._offsets: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.topics: defaultdict[str, list[Stored]] = defaultdict(list)

    def run(self, records: list[tuple[int, Line]]) -> None:
        rows = self._rows(records).cache()

        def read(names: list[str]) -> DataFrame:
            return rows.where(rows["topic"].isin(names))

        for row in self._engine.compiled(read, {}).collect():
            stored = (_bytes(row.key), _bytes(row.value), row.timestamp)
            self.topics[row.topic].append(stored)
        self._engine.committed()
        rows.unpersist()

    def _rows(self, records: list[tuple[int, Line]]) -> DataFrame:
        found = []
        for partition, (topic, key_bytes, value_bytes, time_ms) in records:
            offset = self._offsets[topic, partition]
            self._offsets[topic, partition] += 1
            found.append((topic, partition, offset, key_bytes, value_bytes, time_ms * 1000, None))
        columns = [
            pa.array(column, field.type) for column, field in zip(zip(*found, strict=True), _RECORDS, strict=True)
        ]
        return self._spark.createDataFrame(pa.Table.from_arrays(columns, schema=_RECORDS))


def _bytes(content: Any) -> bytes | None:
    return None if content is None else bytes(content)


def texts(dice: random.Random, prefix: bytes) -> list[Line]:
    """Records of one topic: late ones, and such without key or value."""
    lines: list[Line] = []
    now_ms = 0
    nulls, late_ms = dice.choice((0.0, 0.1)), dice.choice((0, 5, 30))
    for _ in range(60):
        now_ms += dice.choice((0, 0, 1, 1, 2, 5)) if dice.random() < 0.97 else dice.randint(20, 60)
        key_bytes = None if dice.random() < nulls / 2 else prefix + dice.choice("abc").encode()
        value_bytes = None if dice.random() < nulls else (dice.choice("abc") + dice.choice("12")).encode()
        at_ms = max(0, now_ms - (dice.randint(0, late_ms) if dice.random() < 0.3 else 0))
        lines.append(("left", key_bytes, value_bytes, at_ms))
    return lines


def orders(dice: random.Random, prefix: bytes) -> list[Line]:
    """The same times and keys with JSON in them."""
    found: list[Line] = []
    for topic, key_bytes, value_bytes, at_ms in texts(dice, prefix):
        order = {"item": dice.choice("xyz"), "cents": dice.randint(-50, 50)}
        found.append((topic, key_bytes, None if value_bytes is None else json.dumps(order).encode(), at_ms))
    return found


def values_in(records: list[Stored]) -> dict[bytes | None, bytes]:
    return {key: row[0] for key, row in as_table(records).items()}


def run(spark: SparkSession, topology: Topology, cuts: Cuts) -> dict[str, list[Stored]]:
    batches = Batches(spark, topology)
    for number in range(cuts.batches):
        batches.run(cuts.batch(number))
    return batches.topics


def test_records_one_by_one(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=str)
    stream = builder.stream("left")
    stream.filter(value() != "a1").map_values(concat(value(), "!")).to("filtered")
    stream.filter_not(value().starts_with("a")).select_key(concat(key(), "/", value())).to("rekeyed")
    stream.map(value(), struct(key=key(), at=timestamp())).to("mapped")
    stream.flat_map_values(function("split", value(), "")).to("letters")
    branches = stream.split().branch(value().starts_with("a")).branch(value().is_null()).default_branch()
    one, none, rest = branches.values()
    one.merge(rest).to("merged")
    none.to("empty")
    stream.to(when(value().starts_with("b"), "chosen-b").otherwise("chosen"))
    topology = builder.build()
    cuts = Cuts("one by one", texts, 2)
    found = run(spark, topology, cuts)
    for topic in ("filtered", "rekeyed", "mapped", "letters", "merged", "empty", "chosen-b", "chosen"):
        assert as_stream(found[topic]) == as_stream(cuts.expected(topology, topic)), topic


def malformed(dice: random.Random, prefix: bytes) -> list[Line]:
    """Keys and values of bytes that are often no UTF-8, begun and not ended, or too long, or half a surrogate pair."""
    some = (0x41, 0x80, 0xBF, 0xC0, 0xC3, 0xE0, 0xA0, 0xE2, 0x82, 0xED, 0xEF, 0xF0, 0x90, 0xF4, 0x8F, 0xF5, 0xFF)

    def made() -> bytes:
        return bytes(dice.choice(some) for _ in range(dice.randint(0, 6)))

    return [("left", prefix + made(), made(), now_ms) for now_ms in range(60)]


def test_text_that_is_no_utf8(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=str)
    stream = builder.stream("left")
    stream.filter(value() != "x").to("passed-on")
    stream.select_key(value()).map_values(function("length", value())).to("lengths")
    stream.group_by_key().count().to_stream().to("counts")
    topology = builder.build()
    cuts = Cuts("malformed", malformed, 2)
    found = run(spark, topology, cuts)
    for topic in ("passed-on", "lengths"):
        assert as_stream(found[topic]) == as_stream(cuts.expected(topology, topic)), topic
    assert as_table(found["counts"]) == as_table(cuts.expected(topology, "counts"))


def test_counts_and_sums_in_windows(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=Order)
    grouped = builder.stream("left").group_by_key()
    grouped.windowed_by(tumbling(10, grace_ms=15)).count().to_stream().to("tumbling")
    hops = grouped.windowed_by(hopping(10, 3)).agg(n=count_of(), total=sum_of(col("cents")), low=min_of(col("cents")))
    hops.to_stream().to("hopping")
    sliced = grouped.windowed_by(hopping(7, 4, grace_ms=5)).max(col("cents"), store="sliced")
    sliced.filter((value() > 10) & (window_start().cast(_LONG) >= 8)).to_stream().to("filtered")
    topology = builder.build()
    cuts = Cuts("windows", orders, 6)
    found = run(spark, topology, cuts)
    for topic in ("tumbling", "hopping"):
        assert as_table(found[topic]) == as_table(cuts.expected(topology, topic)), topic
    # A maximum of nulls is no row in the driver, so the time of its nulls is forgotten there.
    assert values_in(found["filtered"]) == values_in(cuts.expected(topology, "filtered"))


def test_counts_and_sums_for_ever(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=Order)
    grouped = builder.stream("left").filter(col("item") != "z").group_by_key()
    grouped.count(store="counts").to_stream().to("counts")
    grouped.avg(col("cents")).map_values(function("round", value()).cast(_LONG), value=int).to_stream().to("means")
    grouped.sum(col("cents") / 4).to_stream().to("quarters")
    grouped.agg(high=max_of(col("cents")), n=count_of(col("item"))).filter(col("n") > 3, store="many").to_stream().to(
        "many"
    )
    topology = builder.build()
    cuts = Cuts("for ever", orders, 5)
    found = run(spark, topology, cuts)
    for topic in ("counts", "means", "many", "quarters"):
        assert as_table(found[topic]) == as_table(cuts.expected(topology, topic)), topic
    assert as_table(found["app-counts-changelog"]) == as_table(found["counts"])


def in_order(dice: random.Random, prefix: bytes) -> list[Line]:
    """Two topics whose times never stand still, so that there is one order."""
    lines: list[Line] = []
    for now_ms in range(1, 80):
        topic = dice.choice(("left", "left", "right"))
        order = json.dumps({"item": dice.choice("xyz"), "cents": dice.randint(1, 9)}).encode()
        deleted = topic == "right" and dice.random() < 0.2
        no_key = topic == "left" and dice.random() < 0.05
        lines.append(
            (topic, None if no_key else prefix + dice.choice("abcd").encode(), None if deleted else order, now_ms)
        )
    return lines


def test_streams_joined_with_tables(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = StreamsBuilder(key=str, value=Order)
    stream, table = builder.stream("left"), builder.table("right")
    both = struct(item=left("item"), mine=left("cents"), yours=right("cents"), at=timestamp())
    stream.join(table, both).to("inner")
    stream.left_join(table, both).to("left-joined")
    cheap = table.filter(col("cents") < 5).map_values(concat(col("item"), "!"))
    stream.left_join(cheap, struct(item=left("item"), cheap=right())).to("derived")
    topology = builder.build()
    cuts = Cuts("joins", in_order, 6)
    # Changes are folded into the base nearly every time.
    monkeypatch.setattr("millstream.streams.lower.native.joins.FOLD_ROWS", -1)
    found = run(spark, topology, cuts)
    for topic in ("inner", "left-joined", "derived"):
        assert as_stream(found[topic]) == as_stream(cuts.expected(topology, topic)), topic
