"""Joins of two topics on Spark: of streams and of tables, with as many records in one as in the other or with far more.

Twenty partitions are twenty ways to cut both topics into micro-batches (cutting.py). What decides the result of a join
is which records come in one micro-batch, so the application does not run while it is fed: one topic would be seen
before the other. It goes on with the state that it finds in the changelogs, as after every stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.streams import Application, StreamsBuilder
from tests.streams.reference_cases import WINDOW, join
from tests.streams_spark.cutting import WAYS, Cuts, as_stream
from tests.streams_spark.test_application import Cluster, cluster, settings, with_prefix
from tests.streams_spark.test_native import texts

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.streams.memory_topics import Line

__all__ = ["cluster"]

STREAMS, TABLES = ("left", "right"), ("kept", "others")


def unequal(dice: random.Random, prefix: bytes) -> list[Line]:
    """The same records for two streams and for two tables; of some ways nothing, or nearly nothing, is in one of the
    two."""
    share = dice.choice((0.0, 0.05, 0.3, 0.5, 0.8, 1.0))
    found: list[Line] = []
    for _, *rest in texts(dice, prefix):
        side = int(dice.random() < share)
        found += [(STREAMS[side], *rest), (TABLES[side], *rest)]  # type: ignore[arg-type]
    return found


def test_streams_and_tables_of_two_topics_are_joined_as_by_the_driver(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    left, right = (builder.stream(f"{name}-{topic}") for topic in STREAMS)
    kept, others = (builder.table(f"{name}-{topic}") for topic in TABLES)
    sinks = {
        "inner": left.join(right, join, WINDOW, result=str),
        "left-joined": left.left_join(right, join, WINDOW, result=str),
        "outer": left.outer_join(right, join, WINDOW, result=str),
        "tables": kept.join(others, join).to_stream(),
        "tables-left": kept.left_join(others, join).to_stream(),
        "tables-outer": kept.outer_join(others, join).to_stream(),
    }
    for sink, results in sinks.items():
        results.to(f"{name}-{sink}")
    topology = builder.build()
    cuts = Cuts("two topics", with_prefix(name, unequal), 2)
    cluster.make(*(f"{name}-{topic}" for topic in (*STREAMS, *TABLES)), partitions=WAYS)
    cluster.make(*(f"{name}-{sink}" for sink in sinks), partitions=2)
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    assert [said[3:9] for said in app.engines()] == ["python", "python"]
    for number in range(cuts.batches):
        cluster.feed(cuts.batch(number))
        app.run(spark, trigger="available_now")
    sizes = [len(cluster.read(f"{name}-{topic}")) for topic in STREAMS]
    assert sizes[0] != sizes[1]
    expected = cuts.expected_everywhere(topology)
    for sink in sinks:
        topic = f"{name}-{sink}"
        assert expected[topic], f"{sink}: nothing to compare"
        assert as_stream(cluster.read(topic)) == as_stream(expected[topic]), sink
