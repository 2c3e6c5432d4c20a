"""What Spark forces to be otherwise than in the test driver: the list in docs/streams.md, point by point.

That nothing else differs is what the other tests here say. A partitioner that is refused is in test_application.py;
functions that are called again are in test_standalone_app.py, topics that come later in test_changing_topics.py. What
both engines share needs no Spark here: it is said of the Python engine on topics in memory.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream.streams import (
    PunctuationType,
    Record,
    SerdeError,
    StreamsBuilder,
    TopologyTestDriver,
    col,
    left,
    right,
    struct,
)
from millstream.streams.lower.native.json_source import JsonFields
from millstream.streams.lower.native.pruning import json_fields
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.lower.tasks.partition import PartitionTask
from millstream.streams.lower.tasks.wires import unpack
from tests.streams.memory_topics import MemoryTopics, driven
from tests.streams_spark.test_native import Batches, Order

if TYPE_CHECKING:
    from collections.abc import Callable

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


def test_other_fields_are_not_looked_at() -> None:
    builder = StreamsBuilder(key=str, value=Price)
    builder.stream("left").group_by_key().sum(col("cents")).to_stream().to("sums")
    topology = builder.build()
    (part,) = subtopologies(topology.plan)
    odd = b'{"cents": 1, "item": [5]}'
    fields = JsonFields(json_fields(topology.plan, part))
    taken = fields.taken_apart(pa.record_batch({"value": pa.array([odd], pa.binary())}))
    assert taken.column("value").to_pylist() == [{"cents": 1}]
    with pytest.raises(SerdeError, match="Expected `str`"):
        driven(topology, [[("left", b"k", odd, 0)]], "sums")


def test_json_without_a_schema_keeps_its_bytes(spark: SparkSession) -> None:
    written = b'{"cents" : 1,  "item" : "x"}'
    for kind, kept in ((dict, True), (Order, False)):
        builder = StreamsBuilder(key=str, value=kind)
        builder.stream("in").to("out")
        driver, on_spark = both(spark, builder.build(), [[("in", b"k", written, 0)]], "out")
        assert driver[0][1] in (b'{"cents":1,"item":"x"}', b'{"item":"x","cents":1}'), "written anew"
        assert on_spark == ([(b"k", written, 0)] if kept else driver)


def test_doubles_in_json_are_the_same_numbers_in_another_form(spark: SparkSession) -> None:
    builder = StreamsBuilder(key=str, value=Order)
    builder.stream("in").select(large=col("cents") * 1e6, small=col("cents") / 1e5).to("out")
    ((_, in_driver, _),), ((_, on_spark, _),) = both(spark, builder.build(), [[("in", b"k", order(10), 0)]], "out")
    assert in_driver == b'{"large":10000000.0,"small":0.0001}'
    assert on_spark == b'{"large":1.0E7,"small":1.0E-4}'
    assert json.loads(in_driver) == json.loads(on_spark)


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
    _, at_once = both(spark, builder.build(), [[("left", b"a", order(1), 7), ("right", b"a", order(3), 7)]], "out")
    assert len(at_once) == 1, "the table's is first"


def together(one: str, other: str | None) -> str:
    return f"{one}|{other}"


def in_memory(
    build: Callable[[StreamsBuilder], object], *cuts: list[Line], last_first: bool = False
) -> tuple[list[Stored], dict[str, list[Stored]]]:
    """What the driver writes to the topic `out`, and all topics of the Python engine."""
    builder = StreamsBuilder(key=str, value=str)
    build(builder)
    topology = builder.build()
    topics = MemoryTopics(topology, random.Random(0), loses_tasks=False)
    for cut in cuts:
        topics.feed(cut)
        topics.work_off(last_first=last_first)
    return driven(topology, [*cuts], "out"), topics.topics


def test_between_topics_the_order_is_that_of_micro_batches() -> None:
    click, user = ("clicks", b"k", b"click", 10), ("users", b"k", b"ada", 5)

    def build(builder: StreamsBuilder) -> None:
        builder.stream("clicks").left_join(builder.table("users"), together, value=str).to("out")

    _, at_once = in_memory(build, [click, user])
    _, one_by_one = in_memory(build, [click], [user])
    assert at_once["out"] == [(b"k", b"click|ada", 10)]
    assert one_by_one["out"] == [(b"k", b"click|None", 10)]


def test_between_sub_topologies_it_is_up_to_timing() -> None:
    """The driver brings a record to its end before it takes the next; here it meets what came to a table meanwhile."""
    click, user = ("clicks", b"k", b"ada", 10), ("users", b"ada", b"Ada", 20)

    def build(builder: StreamsBuilder) -> None:
        moved = builder.stream("clicks").select_key(lambda _key, each: each, key=str)
        moved.left_join(builder.table("users"), together, value=str).to("out")

    driver, here = in_memory(build, [click, user])
    assert driver == here["out"] == [(b"ada", b"ada|None", 10)]
    driver, here = in_memory(build, [click, user], last_first=True)
    assert driver == [(b"ada", b"ada|None", 10)]
    assert here["out"] == [(b"ada", b"ada|Ada", 10)]


def test_results_of_a_foreign_key_join_that_are_overtaken_are_left_out() -> None:
    def build(builder: StreamsBuilder) -> None:
        left, right = builder.table("left"), builder.table("right")
        left.left_join(right, together, on=lambda each: each[:1]).to_stream().to("out")

    driver, here = in_memory(build, [("right", b"x", b"r", 1)], [("left", b"a", b"x1", 2), ("left", b"a", b"x2", 3)])
    assert driver == [(b"a", b"x1|r", 2), (b"a", b"x2|r", 3)]
    assert here["out"] == driver[-1:]
    # Deleted and back, and nothing to join it with: the last word is the driver's.
    driver, here = in_memory(build, [("left", b"a", b"x1", 2)], [("left", b"a", None, 3), ("left", b"a", b"x1", 4)])
    assert [value for _, value, _ in driver] == [b"x1|None", None, b"x1|None"]
    assert here["out"][-1] == driver[-1]


def test_foreign_keys_and_grouped_tables_have_internal_topics_in_our_own_form() -> None:
    """MessagePack, where Kafka Streams has forms of its own, which go with its version."""

    def build(builder: StreamsBuilder) -> None:
        left = builder.table("left")
        left.join(builder.table("right"), together, on=lambda each: each[:1], name="fk").to_stream().to("out")
        left.group_by(lambda key, each: (each[:1], key)).count(store="groups").to_stream().to("counts")

    _, here = in_memory(build, [("right", b"x", b"r", 1), ("left", b"a", b"x1", 2)], [("left", b"a", None, 3)])
    sent = {
        name: [unpack(held or b"") for _, held, _ in here[name]]
        for name in here
        if "app-" in name and "log" not in name
    }
    assert sorted(sent) == [
        "app-fk-subscription-registration-topic",
        "app-fk-subscription-response-topic",
        "app-groups-repartition",
    ]
    assert [each[0] for each in sent["app-fk-subscription-registration-topic"]] == [b"x1", None]
    assert sent["app-fk-subscription-response-topic"][0][:2] == [b"x1", b"r"]
    assert sent["app-groups-repartition"] == [[b"a", None], [None, b"a"]]


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
        "keeps its bytes",
        "`1.0E7`",
        "last digits",
        "that of time",
        "the order is that in which micro-batches come",
        "up to timing",
        "out of date before they could be sent",
        "in a form of their own",
        "not without",
        "calls them again",
        "partitioner is refused",
        "after the next start",
    ],
)
def test_the_documentation_lists_it(point: str) -> None:
    from tests.support.requirements import PROJECT_ROOT

    said = (PROJECT_ROOT / "docs" / "streams.md").read_text()
    assert point in said.partition("### What differs from the test driver")[2].partition("\n## ")[0]
