"""Operators that run in Python, many in one application on Spark: every single record is the test driver's.

One topic with twenty partitions, which is twenty ways to cut the records into micro-batches (cutting.py). All operators
read the one topic: whichever micro-batch a record comes with, it comes in the same order. Only the global table has its
own, whose changes are there before the records that meet them. What goes through internal topics is in
test_application.py, and tests/streams/test_lower_tasks.py has all ninety topologies, without Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams import STRING_SERDE as TEXT
from millstream.streams import (
    Application,
    KeyValueStore,
    PunctuationType,
    Record,
    StreamsBuilder,
    session,
    sliding,
    tumbling,
    until_time_limit,
    until_window_closes,
)
from tests.streams.reference_cases import WINDOW, append, append_slash, join, plus, primed
from tests.streams_spark.cutting import WAYS, Cuts, as_stream
from tests.streams_spark.test_application import Cluster, cluster, settings, with_prefix
from tests.streams_spark.test_native import texts

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.streams import GlobalKTable, KStream
    from tests.streams.memory_topics import Line

__all__ = ["cluster"]


class Remembering:
    """Says each value with the one before it, and every ten milliseconds of the stream how many keys there are."""

    def init(self, context: Any) -> None:
        self.context = context
        self.store = context.get_state_store("before")
        context.schedule(10, PunctuationType.STREAM_TIME, self.tick)

    def tick(self, now_ms: int) -> None:
        for key, _ in self.store.all():
            self.context.forward(Record(key, "tick", now_ms))

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.context.forward(record.with_value(f"{self.store.get(record.key)}>{record.value}"))
            self.store.put(record.key, record.value)


def one_by_one(left: KStream, right: KStream) -> dict[str, KStream]:
    """Without state, and processors."""
    said = right.map_values(lambda each: each * 2, value=str)
    some, rest = left.split().branch(lambda _key, each: each == "a1").default_branch().values()
    return {
        "mapped": said.filter_not(lambda _key, each: each == "b1b1"),
        "flat": said.flat_map_values(lambda each: [*each], value=str),
        "pairs": said.flat_map(lambda key, each: [(each, key), (key, each)], key=str, value=str),
        "branches": some.map_values(lambda each: f"{each}!", value=str).merge(rest),
        "processed": left.process(Remembering, "before", key=str, value=str),
    }


def aggregated(left: KStream, right: KStream) -> dict[str, KStream]:
    grouped, others = left.group_by_key(), right.group_by_key()
    tumbled = grouped.windowed_by(tumbling(10, grace_ms=6))
    found = {
        "sessions": grouped.windowed_by(session(5, grace_ms=8)).count(store="sessions"),
        "sessions-reduced": grouped.windowed_by(session(4, grace_ms=30)).reduce(plus),
        "sliding": grouped.windowed_by(sliding(10, grace_ms=12)).reduce(plus),
        "tumbling": tumbled.aggregate(lambda: "0", append),
        "final": tumbled.count().suppress(until_window_closes()),
        "emitted": tumbled.emit_final().reduce(plus),
        "limited": others.count().suppress(until_time_limit(9)),
        "reduced": others.reduce(max),
        "cogrouped": grouped.cogroup(append).cogroup(others, append_slash).aggregate(lambda: "0"),
    }
    return {sink: table.to_stream() for sink, table in found.items()}


def joined(left: KStream, right: KStream) -> dict[str, KStream]:
    table, other = left.to_table(store="lefts"), right.to_table(store="rights")
    tables = {
        "tables": table.join(other, join),
        "tables-left": table.left_join(other, join),
        "tables-outer": table.outer_join(other, join),
        "table": table.filter(lambda _key, each: each.startswith("a")).map_values(primed),
    }
    return {
        "inner": left.join(right, join, WINDOW, result=str),
        "left-joined": left.left_join(right, join, WINDOW, result=str),
        "outer": left.outer_join(right, join, WINDOW, result=str),
        "with-table": left.join(other, join, value=str),
        "with-table-left": right.left_join(table, join, value=str),
        **{sink: each.to_stream() for sink, each in tables.items()},
    }


def with_everybody(left: KStream, right: KStream, everybody: GlobalKTable) -> dict[str, KStream]:
    """Joins with a global table, by a key of the record's."""

    def letter(key: str | None, each: str | None) -> str | None:
        return f"{key[:2]}{each[0]}" if key and each else None

    return {
        "everybody": left.join(everybody, join, on=letter, value=str),
        "everybody-left": right.left_join(everybody, join, on=letter, value=str),
    }


def with_changes(dice: random.Random, prefix: bytes) -> list[Line]:
    """Records of the one topic, and among them changes of the global table."""
    found: list[Line] = []
    for line in texts(dice, prefix):
        if dice.random() < 0.3:
            name = prefix + dice.choice("abc").encode()
            found.append(("global", name, None if dice.random() < 0.2 else dice.choice("xyz").encode(), line[3]))
        found.append(line)
    return found


def test_every_single_record_over_twenty_cuts(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    builder.add_state_store(KeyValueStore("before", TEXT, TEXT))
    stream = builder.stream(f"{name}-left")
    left = stream.filter(lambda _key, each: each is None or each[0] in "ab")
    right = stream.filter(lambda _key, each: each is not None and each[0] in "bc")
    everybody = builder.global_table(f"{name}-global")
    sinks = {**one_by_one(left, right), **aggregated(left, right), **joined(left, right)}
    sinks |= with_everybody(left, right, everybody)
    for sink, results in sinks.items():
        results.to(f"{name}-{sink}")
    topology = builder.build()
    cuts = Cuts("python", with_prefix(name, with_changes), 3)
    cluster.make(f"{name}-left", f"{name}-global", partitions=WAYS)
    cluster.make(*(f"{name}-{sink}" for sink in sinks), partitions=2)
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    with app.start(spark):
        assert len(app.queries) == 1, "no internal topics to wait for"
        for number in range(cuts.batches):
            if number == 2:
                app.restart()
            # The topics one after the other, the global table's first.
            cluster.feed(cuts.batch(number))
            app.process_all_available()
    expected = cuts.expected_everywhere(topology)
    for sink in sinks:
        topic = f"{name}-{sink}"
        assert expected[topic], f"{sink}: nothing to compare"
        assert as_stream(cluster.read(topic)) == as_stream(expected[topic]), sink
