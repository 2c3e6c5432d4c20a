"""Whole applications: topics in, topics out, on Spark, and the same answer as the test driver.

Each topic has six partitions, which is six ways to cut the records into micro-batches (cutting.py); test_native.py and
test_python_operators.py try twenty, operator by operator. Applications are stopped and started again in the middle,
once without Spark's checkpoints: everything is in topics.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from millstream import arrow
from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics, list_topics
from millstream.client.groups import committed_offsets
from millstream.client.sync import SyncClient
from millstream.streams import (
    Application,
    StreamsBuilder,
    Topology,
    col,
    hopping,
    tumbling,
    value,
)
from tests.streams.memory_topics import driven_everywhere
from tests.streams_spark.cutting import Cuts, as_table
from tests.streams_spark.test_native import Order, orders
from tests.support.topics import until_led, until_settled

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.streams.memory_topics import Line, Stored

WAYS = 6


class Cluster:
    """Topics for one test, written and read as they are."""

    def __init__(self, servers: str, prefix: str) -> None:
        self.servers = servers
        self._prefix = prefix

    def make(self, *topics: str, partitions: int = WAYS) -> None:
        new = [NewTopic(topic, partitions, 1, {"retention.ms": "-1"}) for topic in topics]
        with SyncClient({"bootstrap.servers": self.servers}) as client:
            raise_first(client.run(create_topics, new))
        for topic in topics:
            until_led(self.servers, topic, partitions)

    def feed(self, records: list[tuple[int, Line]]) -> None:
        for topic in sorted({line[0] for _, line in records}):
            rows = [(partition, *line[1:]) for partition, line in records if line[0] == topic]
            partitions, keys, values, times = zip(*rows, strict=True)
            table = pa.table(
                {
                    "key": pa.array(keys, pa.binary()),
                    "value": pa.array(values, pa.binary()),
                    "timestamp": pa.array(times, pa.timestamp("ms", tz="UTC")),
                    "partition": pa.array(partitions, pa.int32()),
                }
            )
            arrow.write(self.servers, topic, table, partition_by="partition")

    def feed_by_key(self, lines: list[Line]) -> None:
        """Where Java's producer would put them."""
        for topic in sorted({line[0] for line in lines}):
            keys, values, times = zip(*(line[1:] for line in lines if line[0] == topic), strict=True)
            columns = {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
            stamps = pa.array(times, pa.timestamp("ms", tz="UTC"))
            arrow.write(self.servers, topic, pa.table({**columns, "timestamp": stamps}))

    def read(self, topic: str) -> list[Stored]:
        """All that is committed; Apache Kafka may be a moment behind with that."""
        until_settled(self.servers, topic)
        table = arrow.read(self.servers, topic, columns=["key", "value", "timestamp"])
        times = table["timestamp"].cast("int64").to_pylist()
        return list(zip(table["key"].to_pylist(), table["value"].to_pylist(), times, strict=True))


@pytest.fixture
def cluster(servers: str, fresh_name: str) -> Cluster:
    return Cluster(servers, fresh_name)


def with_prefix(prefix: str, make: Callable[[random.Random, bytes], list[Line]]) -> Any:
    """The same records in topics of the test's own."""
    return lambda dice, start: [(f"{prefix}-{topic}", *rest) for topic, *rest in make(dice, start)]


def settings(folder: Path) -> dict[str, object]:
    """Every micro-batch is Spark's work, small as they are; test_direct.py has the driver do them."""
    return {"state.dir": folder, "direct.records.max": 0}


def test_windows_survive_restarts_and_lost_checkpoints(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    name = fresh_name
    builder = StreamsBuilder(key=str, value=Order)
    grouped = builder.stream(f"{name}-left").filter(col("item") != "z").group_by_key()
    grouped.windowed_by(tumbling(10, grace_ms=15)).count(store="counts").to_stream().to(f"{name}-counts")
    sums = grouped.windowed_by(hopping(10, 5, grace_ms=3)).sum(col("cents"))
    sums.filter(value() > 20, store="large").to_stream().to(f"{name}-large")
    topology = builder.build()
    cuts = Cuts("windows", with_prefix(name, orders), 4, ways=WAYS)
    outputs = [f"{name}-counts", f"{name}-large"]
    cluster.make(f"{name}-left", *outputs)
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    assert app.engines() == ["0: spark"]
    with app.start(spark):
        for number in range(cuts.batches):
            if number == 1:
                app.restart()
            if number == 2:
                app.stop()
                shutil.rmtree(tmp_path / name)
                app.start(spark)
            cluster.feed(cuts.batch(number))
            app.process_all_available()
        for topic in outputs:
            assert as_table(cluster.read(topic)) == as_table(cuts.expected(topology, topic)), topic
        store: Any = app.store("counts")
        store.wait_until_current()
        expected = as_table(cuts.expected(topology, outputs[0]))
        windows = store.fetch_all(0, 10**12)
        assert len(windows) == len(expected)
        assert sum(count for _, count in windows) == sum(int.from_bytes(row[0]) for row in expected.values())
    with SyncClient({"bootstrap.servers": cluster.servers}) as client:
        stored = client.run(committed_offsets, name)
        topics = {topic.name for topic in client.run(list_topics)}
    read = [offset.offset for (topic, _), offset in stored.items() if topic == f"{name}-left"]
    assert sum(read) == sum(len(cuts.batch(number)) for number in range(cuts.batches)), "as an ordinary group's lag"
    assert {f"{name}-counts-changelog", f"{name}-large-changelog", f"{name}-tasks-changelog"} <= topics


def joined(one: str | None, other: str | None) -> str:
    return f"{one}|{other}"


def changes(dice: random.Random, prefix: bytes) -> list[Line]:
    """Two tables' changes, whose keys and references begin with the way's number: no two ways meet."""
    lines: list[Line] = []
    for now_ms in range(1, 25):
        deleted = dice.random() < 0.2
        each = None if deleted else prefix + (dice.choice("abc") + dice.choice("12")).encode()
        topic = dice.choice(("left", "right"))
        row_key = dice.choice("abc") if topic == "right" else str(dice.randint(0, 5))
        lines.append((topic, prefix + row_key.encode(), each, now_ms))
    return lines


def test_sub_topologies_feed_each_other(spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path) -> None:
    """Foreign-key joins, tables grouped anew, and streams under a new key, through internal topics.

    Twenty ways to cut, as everywhere (cutting.py). Keys go where their hash puts them, since what comes back through a
    topic must find its row, so the ways share partitions and are told apart by how their keys begin.
    """
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    left, right = builder.table(f"{name}-left"), builder.table(f"{name}-right")
    left.left_join(right, joined, on=lambda each: each[:3]).to_stream().to(f"{name}-joined")
    left.join(right, joined, on=lambda each: each[:3]).to_stream().to(f"{name}-paired")
    left.group_by(lambda key, each: (each[:3], key)).count(store="groups").to_stream().to(f"{name}-groups")
    right.to_stream().select_key(lambda key, each: f"{key[:2]}{str(each)[2:3]}", key=str).group_by_key().count(
        store="words"
    ).to_stream().to(f"{name}-words")
    topology = builder.build()
    outputs = [f"{name}-{each}" for each in ("joined", "paired", "groups", "words")]
    cluster.make(f"{name}-left", f"{name}-right", *outputs, partitions=3)
    cuts = Cuts("changes", with_prefix(name, changes), 3)
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    with app.start(spark):
        for number in range(cuts.batches):
            cluster.feed_by_key([line for _, line in cuts.batch(number)])
            app.process_all_available()
        assert len(app.queries) > 1
    # The driver has each record through before the next.
    expected: dict[str, dict[bytes | None, Any]] = defaultdict(dict)
    for pieces in cuts.pieces:
        for topic, written in driven_everywhere(topology, [[line] for piece in pieces for line in piece]).items():
            expected[topic] |= as_table(written)
    for topic in outputs:
        found = {key: row[0] for key, row in as_table(cluster.read(topic)).items()}
        assert found == {key: row[0] for key, row in expected[topic].items()}, topic


def test_what_cannot_be_right_is_refused_before_anything_runs(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    builder.stream(f"{name}-in").to(f"{name}-out")
    topology: Topology = builder.build()
    other = StreamsBuilder(key=str, value=str)
    other.stream(f"{name}-in").to(f"{name}-out", partitioner=lambda _key, _value, _count: 0)
    with pytest.raises(ValueError, match="KSTREAM-SINK-0000000001: a partitioner does not run on Spark"):
        Application(other.build(), name, bootstrap_servers=cluster.servers, settings=settings(tmp_path)).start(spark)
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    with pytest.raises(ValueError, match=f"there is no topic '{name}-in'"):
        app.start(spark)
    cluster.make(f"{name}-in", f"{name}-out", partitions=2)
    with pytest.raises(ValueError, match="did you mean 'at_least_once'"):
        app.start(spark, guarantee="at_most_once")
    cluster.feed([(0, (f"{name}-in", b"k", json.dumps(1).encode(), 5))])
    app.run(spark, guarantee="at_least_once", trigger="available_now")
    assert cluster.read(f"{name}-out") == [(b"k", b"1", 5)]
    assert not app.is_active
