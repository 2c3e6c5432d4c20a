"""Applications that are hit at each step of a micro-batch go on without a gap and without a double.

Both engines at once: one sub-topology of columns, one of Python functions, each with state. The driver fails between
the steps of a transaction, and workers are killed with `kill -9` while they write. What comes out is compared with the
test driver, records one by one where the engine gives them so. At least once there is no gap either.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.streams import Application, StreamsBuilder, concat, tumbling, value
from tests.streams_spark.cutting import Cuts, as_stream, as_table
from tests.streams_spark.failing import MOMENTS, STEPS, STEPS_AT_LEAST_ONCE, fail_at_each_step, kill_workers
from tests.streams_spark.test_application import WAYS, Cluster, cluster, settings, with_prefix
from tests.streams_spark.test_native import texts

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.streams.memory_topics import Line

__all__ = ["cluster"]


def both(dice: random.Random, prefix: bytes) -> list[Line]:
    return [(dice.choice(("counted", "reduced")), *rest) for _, *rest in texts(dice, prefix)]  # type: ignore[misc]


def test_every_step_may_fail(spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path) -> None:
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    counts = builder.stream(f"{name}-counted").group_by_key().windowed_by(tumbling(10, grace_ms=15)).count()
    counts.to_stream().to(f"{name}-counts")
    grouped = builder.stream(f"{name}-reduced").group_by_key()
    grouped.reduce(lambda one, other: (one + other)[-6:]).to_stream().to(f"{name}-texts")
    topology = builder.build()
    cuts = Cuts("faults", with_prefix(name, both), 1 + len(STEPS) + len(MOMENTS), ways=WAYS)
    cluster.make(*(f"{name}-{each}" for each in ("counted", "reduced", "counts", "texts")))
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    assert [said[3:9] for said in app.engines()] == ["spark", "python"]
    fail_at_each_step(app, spark, cluster, cuts)
    kill_workers(app, cluster, cuts, tmp_path, first=1 + len(STEPS))
    app.stop()
    texts_topic, counts_topic = f"{name}-texts", f"{name}-counts"
    assert as_stream(cluster.read(texts_topic)) == as_stream(cuts.expected(topology, texts_topic))
    assert as_table(cluster.read(counts_topic)) == as_table(cuts.expected(topology, counts_topic))


def test_at_least_once_nothing_is_lost(spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path) -> None:
    """A micro-batch that is done again is written again, and counted again; nothing is made up."""
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    columns = builder.stream(f"{name}-counted")
    columns.map_values(concat(value(), "!")).to(f"{name}-loud")
    columns.group_by_key().count().to_stream().to(f"{name}-counts")
    builder.stream(f"{name}-reduced").map_values(lambda each: f"{each}?", value=str).to(f"{name}-asked")
    topology = builder.build()
    cuts = Cuts("at least once", with_prefix(name, both), 1 + len(STEPS_AT_LEAST_ONCE) + len(MOMENTS), ways=WAYS)
    cluster.make(*(f"{name}-{each}" for each in ("counted", "reduced", "loud", "counts", "asked")))
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    assert [said[3:9] for said in app.engines()] == ["spark", "python"]
    fail_at_each_step(app, spark, cluster, cuts, STEPS_AT_LEAST_ONCE)
    kill_workers(app, cluster, cuts, tmp_path, first=1 + len(STEPS_AT_LEAST_ONCE))
    app.stop()
    doubled = 0
    for topic in (f"{name}-loud", f"{name}-asked"):
        found, expected = Counter(cluster.read(topic)), Counter(cuts.expected(topology, topic))
        assert found >= expected, "lost"
        assert found.keys() == expected.keys(), "made up"
        doubled += found.total() - expected.total()
    assert doubled, "the fault did not hit anything"
    counted, expected = (
        {key: int.from_bytes(row[0]) for key, row in as_table(records).items()}
        for records in (cluster.read(f"{name}-counts"), cuts.expected(topology, f"{name}-counts"))
    )
    assert counted.keys() == expected.keys()
    assert all(counted[key] >= count for key, count in expected.items())
