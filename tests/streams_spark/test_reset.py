"""An application that was reset by `millstream streams reset` begins again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from millstream.streams import Application, StreamsBuilder
from tests.cli.conftest import Ended, run_command
from tests.streams_spark.test_application import Cluster, cluster
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.streams.memory_topics import Line

__all__ = ["cluster"]


def test_an_application_that_was_reset_begins_again(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path
) -> None:
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    builder.stream(f"{name}-in").group_by_key().count(store="counts").to_stream().to(f"{name}-out")
    cluster.make(f"{name}-in", f"{name}-out", partitions=1)
    settings = {"state.dir": tmp_path}
    app = Application(builder.build(), name, bootstrap_servers=cluster.servers, settings=settings)

    def counts() -> list[int]:
        app.run(spark, trigger="available_now")
        return [int.from_bytes(value or b"") for _, value, _ in cluster.read(f"{name}-out")]

    def try_to_reset(*more: str) -> Ended:
        words = ("streams", "reset", "--application-id", name, "--input-topics", f"{name}-in", *more)
        return run_command(*words, servers=cluster.servers)

    def reset(*more: str) -> None:
        done = try_to_reset(*more)
        assert done.code == 0, done.err

    cluster.feed([(0, record(name))])
    assert counts() == [1]
    cluster.feed([(0, record(name))])
    assert counts() == [1, 2]
    with app.start(spark):
        wait_until(lambda: "stop all of it first" in try_to_reset("--dry-run").err, "the application to be seen")
    # Spark's checkpoint still says where it was: nobody knows what is right, so nothing is done.
    reset()
    cluster.feed([(0, record(name))])
    with pytest.raises(PySparkException, match="CheckpointMismatch"):
        app.run(spark, trigger="available_now")
    reset("--checkpoint", str(tmp_path / name))
    again = counts()
    assert again[:2] == [1, 2]
    # All three at once or one by one: that is up to the micro-batches.
    assert again[2:] in ([3], [1, 2, 3])


def record(name: str) -> Line:
    return f"{name}-in", b"k", b"v", 5
