"""What Spark forces to be otherwise than in the test driver: the list in docs/streams.md, point by point.

That nothing else differs is what the other tests here say. A partitioner that is refused is in test_application.py;
functions that are called again, and internal topics that are not trimmed, are in test_restarts.py.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from millstream.streams import PunctuationType, Record, StreamsBuilder, TopologyTestDriver, col, left, right, struct
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.lower.tasks.partition import PartitionTask
from tests.streams.memory_topics import driven
from tests.streams_spark.test_native import Batches, Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millstream.streams import Topology
    from tests.streams.memory_topics import Line, Stored


class WithHeaders(Batches):
    """Every record comes with a header; what is written without one is counted."""

    bare = 0

    def run(self, records: list[tuple[int, Line]]) -> None:
        from pyspark.sql import functions as f

        header = f.array(f.struct(f.lit("trace").alias("key"), f.lit(b"1").alias("value")))
        rows = self._rows(records).withColumn("headers", header).cache()

        def read(names: list[str]) -> DataFrame:
            return rows.where(rows["topic"].isin(names))

        written = self._engine.compiled(read, {}).collect()
        self._engine.committed()
        self.bare += sum(1 for row in written if not row.headers)
        for row in written:
            self.topics[row.topic].append((bytes(row.key), bytes(row.value), row.timestamp))


def order(cents: float | None) -> bytes:
    return json.dumps({"item": "x", "cents": cents}).encode()


def both(spark: SparkSession, topology: Topology, cuts: list[list[Line]], topic: str) -> list[list[Stored]]:
    """What the driver writes, and what Spark does with a micro-batch for each cut."""
    batches = Batches(spark, topology)
    for cut in cuts:
        batches.run([(0, line) for line in cut])
    return [driven(topology, cuts, topic), batches.topics[topic]]


def test_an_aggregation_sends_one_change_for_each_key_and_micro_batch(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=Order)
    builder.stream("in").group_by_key().count().to_stream().to("out")
    cuts: list[list[Line]] = [
        [("in", b"a", order(1), 1), ("in", b"b", order(1), 2), ("in", b"a", order(1), 3)],
        [("in", b"a", order(1), 4)],
    ]
    driver, on_spark = (
        [(key, int.from_bytes(value or b"")) for key, value, _ in written]
        for written in both(spark, builder.build(), cuts, "out")
    )
    assert driver == [(b"a", 1), (b"b", 1), (b"a", 2), (b"a", 3)]
    assert sorted(on_spark) == [(b"a", 2), (b"a", 3), (b"b", 1)]


def test_changes_of_an_aggregation_carry_no_headers(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=Order)
    stream = builder.stream("in")
    stream.group_by_key().count(store="counts").to_stream().to("out")
    stream.filter(col("cents") > 0).to("same")
    batches = WithHeaders(spark, builder.build())
    batches.run([(0, ("in", b"a", order(1), 1))])
    assert [len(batches.topics[topic]) for topic in ("out", "app-counts-changelog", "same")] == [1, 1, 1]
    assert batches.bare == 2, "the count and its changelog"
    with TopologyTestDriver(builder.build()) as driver:
        driver.input_topic("in").pipe_input("a", Order("x", 1), 1, (("trace", b"1"),))
        assert driver.output_topic("out").read_record().headers


@dataclass
class Offer:
    """An order that may have no price."""

    item: str
    cents: int | None


def test_an_extreme_of_nulls_remembers_their_time(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=Offer)
    builder.stream("in").group_by_key().max(col("cents")).to_stream().to("out")
    cuts: list[list[Line]] = [[("in", b"a", order(None), 50)], [("in", b"a", order(7), 10)]]
    driver, on_spark = both(spark, builder.build(), cuts, "out")
    assert [driver[-1][0], on_spark[-1][0]] == [b"a", b"a"]
    assert driver[-1][1] == on_spark[-1][1]
    assert [driver[-1][2], on_spark[-1][2]] == [10, 50]


@dataclass
class Price:
    item: str
    cents: int = 7


def test_a_field_that_is_missing_is_null_in_json(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=Price)
    builder.stream("left").group_by_key().sum(col("cents")).to_stream().to("sums")
    lines: list[Line] = [("left", b"k", b'{"item": "a", "cents": 1}', 0), ("left", b"k", b'{"item": "b"}', 1)]
    driver, in_spark = both(spark, builder.build(), [lines], "sums")
    assert [int.from_bytes(value or b"") for _, value, _ in driver] == [1, 8]
    assert [int.from_bytes(value or b"") for _, value, _ in in_spark] == [1]


def test_sums_of_doubles_agree_but_for_their_last_digits(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=Order)
    builder.stream("in").group_by_key().sum(col("cents") / 7).to_stream().to("out")
    cuts: list[list[Line]] = [[("in", b"a", order(number * 3 + 1), number) for number in range(10)]] * 2
    driver, on_spark = both(spark, builder.build(), cuts, "out")
    assert math.isclose(*(_double(written[-1][1]) for written in (driver, on_spark)), rel_tol=1e-12)


def _double(content: bytes | None) -> float:
    import struct as packing

    (found,) = packing.unpack(">d", content or b"")
    return float(found)


def test_a_join_with_a_table_goes_by_time_within_a_micro_batch(spark: SparkSession) -> None:
    """The driver takes the oldest record at the head of a topic, so one that is behind a younger one has to wait."""
    builder = StreamsBuilder(key=str, value=Order)
    pair = struct(mine=left("cents"), yours=right("cents"))
    builder.stream("left").join(builder.table("right"), pair).to("out")
    lines: list[Line] = [
        ("left", b"a", order(1), 10),
        ("left", b"a", order(2), 5),
        ("right", b"a", order(3), 7),
    ]
    driver, on_spark = both(spark, builder.build(), [lines], "out")
    assert [time_ms for _, _, time_ms in driver] == [10, 5]
    assert [time_ms for _, _, time_ms in on_spark] == [10]


class Clock:
    """Says what time it is, every ten milliseconds."""

    def init(self, context: Any) -> None:
        self.context = context
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def tick(self, now_ms: int) -> None:
        self.context.forward(Record("tick", str(now_ms), now_ms))

    def process(self, record: Record) -> None:
        self.context.forward(record)


def test_wall_clock_time_passes_with_records_only() -> None:
    builder = StreamsBuilder(key=str, value=str)
    builder.stream("in").process(Clock, key=str, value=str).to("out")
    topology = builder.build()
    (part,) = subtopologies(topology.plan)
    task = PartitionTask(topology.plan, part, "app", 0, 0)
    first = task.run([("in", b"k", b"1", 0, (), 0)], 5)
    second = task.run([("in", b"k", b"2", 0, (), 1)], 95)
    assert [out.value for out in (*first, *second) if out.topic == "out"] == [b"1", b"2", b"95"]
    with TopologyTestDriver(topology, wall_clock_ms=0) as driver:
        for _ in range(3):
            driver.advance_wall_clock_time(10)
        assert driver.output_topic("out").read_values_to_list() == ["10", "20", "30"]


@pytest.mark.parametrize(
    "point",
    [
        "one change for each key",
        "no headers",
        "nothing but nulls",
        "only the fields that are asked for",
        "last digits",
        "that of time",
        "not without",
        "calls them again",
        "partitioner is refused",
        "not trimmed",
    ],
)
def test_the_documentation_lists_it(point: str) -> None:
    from tests.support.requirements import PROJECT_ROOT

    said = (PROJECT_ROOT / "docs" / "streams.md").read_text()
    assert point in said.partition("### What differs from the test driver")[2].partition("\n## ")[0]
