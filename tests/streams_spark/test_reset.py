"""An application on either broker, from its first start to a reset by `millstream streams reset`, when it begins again.

A windowed count behind an internal topic, and a join with a table, exactly once: the internal topics have their
settings, and what comes out is the test driver's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from millstream.client.admin import raise_first
from millstream.client.admin.configs import Resource, ResourceKind, describe_configs
from millstream.client.sync import SyncClient
from millstream.streams import Application, StreamsBuilder, Topology, concat, left, right, tumbling, value
from millstream.streams.lower.topics import owned_topics, settings_of_topic
from tests.cli.conftest import Ended, run_command
from tests.streams.memory_topics import driven_everywhere
from tests.streams_spark.brokers import on_either, until_done
from tests.streams_spark.cutting import as_stream, as_table
from tests.streams_spark.test_application import Cluster, cluster
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.streams.memory_topics import Line

__all__ = ["cluster"]

FIRST: tuple[tuple[str, bytes, bytes, int], ...] = (
    ("users", b"ada", b"Paris", 0),
    ("in", b"ada", b"home", 5),
    ("in", b"bob", b"cart", 7),
    ("in", b"ada", b"cart", 31),
)
# The last one is late: its window has closed.
SECOND = (("users", b"bob", b"Rome", 32), ("in", b"bob", b"cart", 33), ("in", b"ada", b"home", 1))
THIRD = (("in", b"ada", b"home", 34),)


def topology_of(name: str) -> Topology:
    builder = StreamsBuilder(key=str, value=str)
    clicks = builder.stream(f"{name}-in")
    pages = clicks.group_by(value(), key=str).windowed_by(tumbling(10, grace_ms=15))
    pages.count(store="windows").to_stream().to(f"{name}-windows")
    clicks.join(builder.table(f"{name}-users"), concat(left(), " in ", right())).to(f"{name}-joined")
    return builder.build()


class Reset:
    """The command, for one application."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._words = ("streams", "reset", "--application-id", name, "--input-topics", f"{name}-in,{name}-users")
        self._servers = cluster.servers

    def attempt(self, *more: str) -> Ended:
        return run_command(*self._words, *more, servers=self._servers)

    def __call__(self, *more: str) -> None:
        until_done(*self._words, *more, servers=self._servers)


@on_either
def test_an_application_that_was_reset_begins_again(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    name = fresh_name
    topology, reset = topology_of(name), Reset(cluster, name)
    windows, joined = f"{name}-windows", f"{name}-joined"
    cluster.make(f"{name}-in", f"{name}-users", windows, joined, partitions=1)
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings={"state.dir": tmp_path})
    first, second, third = (lines_of(name, part) for part in (FIRST, SECOND, THIRD))

    def feed(lines: list[Line]) -> None:
        cluster.feed([(0, line) for line in lines])

    feed(first)
    app.run(spark, trigger="available_now")
    feed(second)
    with app.start(spark):
        app.process_all_available()
        wait_until(lambda: "stop all of it first" in reset.attempt("--dry-run").err, "the application to be seen")
    expected = driven_everywhere(topology, [first, second])
    assert as_table(cluster.read(windows)) == as_table(expected[windows])
    assert as_stream(cluster.read(joined)) == as_stream(expected[joined])
    assert_internal_topics(app)
    # Spark's checkpoint still says where it was: nobody knows what is right, so nothing is done.
    reset()
    feed(third)
    with pytest.raises(PySparkException, match="CheckpointMismatch"):
        app.run(spark, trigger="available_now")
    reset("--checkpoint", str(tmp_path / name))
    before = {topic: len(cluster.read(topic)) for topic in (windows, joined)}
    app.run(spark, trigger="available_now")
    again = driven_everywhere(topology, [first + second + third])
    assert as_table(cluster.read(windows)[before[windows] :]) == as_table(again[windows])
    assert as_stream(cluster.read(joined)[before[joined] :]) == as_stream(again[joined])


def lines_of(name: str, part: tuple[tuple[str, bytes, bytes, int], ...]) -> list[Line]:
    return [(f"{name}-{topic}", *rest) for topic, *rest in part]  # type: ignore[misc]


def assert_internal_topics(app: Application) -> None:
    """They are there with what Kafka Streams would say of them, retention apart."""
    wanted = {
        topic.name: settings_of_topic(topic, app.settings)
        for topic in owned_topics(app.topology.plan, app.application_id)
    }
    short = {topic.removeprefix(f"{app.application_id}-") for topic in wanted}
    assert short == {"windows-repartition", "windows-changelog", "tasks-changelog"}
    resources = [Resource(ResourceKind.TOPIC, topic) for topic in wanted]
    with SyncClient(app.settings.connection) as client:
        found = raise_first(client.run(describe_configs, resources))
    for resource, configs in found.items():
        values = {config.name: config.value for config in configs}
        assert wanted[resource.name].items() <= values.items()
