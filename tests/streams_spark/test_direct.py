"""Micro-batches that the driver works off itself, among those that Spark does: the state goes back and forth, and the
last value of each key is what the test driver says, through restarts, lost checkpoints and steps that fail.
"""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING, Any

from millstream.streams import Application, StreamsBuilder, Topology, hopping, tumbling, value
from millstream.streams.lower.direct import engine as direct
from tests.streams_spark.cutting import Cuts, as_stream, as_table
from tests.streams_spark.failing import STEPS, fail_at_each_step
from tests.streams_spark.test_application import WAYS, Cluster, cluster, settings, with_prefix
from tests.streams_spark.test_native import texts

if TYPE_CHECKING:
    import random
    from pathlib import Path

    import pytest
    from pyspark.sql import SparkSession

    from tests.streams.memory_topics import Line

__all__ = ["cluster"]

UNWANTED = 3


def numbers(dice: random.Random, prefix: bytes) -> list[Line]:
    """The times and keys of others, with numbers in them."""
    return [
        (topic, key, None if text is None else struct.pack(">q", dice.randint(-5, 50)), at_ms)
        for topic, key, text, at_ms in texts(dice, prefix)
    ]


def counting(name: str) -> Topology:
    builder = StreamsBuilder(key=str, value=int)
    grouped = builder.stream(f"{name}-left").filter(value() != UNWANTED).group_by_key()
    grouped.windowed_by(tumbling(10, grace_ms=15)).count(store="windows").to_stream().to(f"{name}-windows")
    grouped.windowed_by(hopping(10, 5, grace_ms=3)).sum(value()).to_stream().to(f"{name}-hops")
    grouped.count(store="counts").to_stream().to(f"{name}-counts")
    return builder.build()


def outputs(name: str) -> list[str]:
    return [f"{name}-windows", f"{name}-hops", f"{name}-counts"]


class Workers:
    """Who worked off each micro-batch; every third is Spark's if they take turns, however large it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, take_turns: bool) -> None:
        self.found: list[str] = []
        write: Any = direct.DirectEngine.write

        def noting(
            engine: direct.DirectEngine, spark: Any, client: Any, transaction: Any, batch: int, span: Any
        ) -> Any:
            engine._records_max = 0 if take_turns and batch % 3 == 0 else 1_000_000
            written = write(engine, spark, client, transaction, batch, span)
            self.found.append("spark" if written is None else "driver")
            return written

        monkeypatch.setattr(direct.DirectEngine, "write", noting)


def test_the_state_goes_back_and_forth(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(direct, "PATIENCE", 1)
    workers = Workers(monkeypatch, take_turns=True)
    name = fresh_name
    topology = counting(name)
    cuts = Cuts("direct", with_prefix(name, numbers), 7, ways=WAYS)
    cluster.make(f"{name}-left", *outputs(name))
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    with app.start(spark):
        for number in range(cuts.batches):
            if number == 3:
                app.restart()
            if number == 5:
                app.stop()
                shutil.rmtree(tmp_path / name)
                app.start(spark)
            cluster.feed(cuts.batch(number))
            app.process_all_available()
    for topic in outputs(name):
        assert as_table(cluster.read(topic)) == as_table(cuts.expected(topology, topic)), topic
    assert set(workers.found) == {"driver", "spark"}


def test_every_step_may_fail_where_the_driver_does_the_work(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = Workers(monkeypatch, take_turns=False)
    name = fresh_name
    topology = counting(name)
    cuts = Cuts("direct faults", with_prefix(name, numbers), len(STEPS) + 1, ways=WAYS)
    cluster.make(f"{name}-left", *outputs(name))
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    fail_at_each_step(app, spark, cluster, cuts)
    app.stop()
    # All of it is the driver's work, so every single record is the same.
    for topic in outputs(name):
        assert as_stream(cluster.read(topic)) == as_stream(cuts.expected(topology, topic)), topic
    assert set(workers.found) == {"driver"}
