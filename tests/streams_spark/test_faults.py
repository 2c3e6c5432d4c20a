"""Applications that are hit at each step of a micro-batch go on without a gap and without a double.

Both engines at once: one sub-topology of columns, one of Python functions, each with state. The driver fails between
the steps of a transaction, and workers are killed with `kill -9` while they write. What comes out is compared with the
test driver, records one by one where the engine gives them so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from millstream.spark import exactly_once_routing, exactly_once_sink
from millstream.streams import Application, StreamsBuilder, tumbling
from tests.spark.exactly_once_driver import dying
from tests.spark.test_exactly_once import failing_after
from tests.streams_spark.cutting import Cuts, as_stream, as_table
from tests.streams_spark.test_application import WAYS, Cluster, cluster, settings, with_prefix
from tests.streams_spark.test_native import texts

if TYPE_CHECKING:
    import random
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.streams.memory_topics import Line

__all__ = ["cluster"]

STEPS = ("begin", "commit_offsets_in", "end_transaction")
MOMENTS = ("before", "after")


def both(dice: random.Random, prefix: bytes) -> list[Line]:
    return [(dice.choice(("counted", "reduced")), *rest) for _, *rest in texts(dice, prefix)]  # type: ignore[misc]


def test_every_step_may_fail(
    spark: SparkSession, cluster: Cluster, fresh_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = fresh_name
    builder = StreamsBuilder(key=str, value=str)
    counts = builder.stream(f"{name}-counted").group_by_key().windowed_by(tumbling(10, grace_ms=15)).count()
    counts.to_stream().to(f"{name}-counts")
    grouped = builder.stream(f"{name}-reduced").group_by_key()
    grouped.reduce(lambda one, other: (one + other)[-6:]).to_stream().to(f"{name}-texts")
    topology = builder.build()
    cuts = Cuts("faults", with_prefix(name, both), len(STEPS) + len(MOMENTS) + 1, ways=WAYS)
    cluster.make(*(f"{name}-{each}" for each in ("counted", "reduced", "counts", "texts")))
    app = Application(topology, name, bootstrap_servers=cluster.servers, settings=settings(tmp_path))
    assert [said[3:9] for said in app.engines()] == ["spark", "python"]
    app.start(spark)
    cluster.feed(cuts.batch(0))
    app.process_all_available()
    for number, step in enumerate(STEPS, 1):
        app.stop()
        cluster.feed(cuts.batch(number))
        with monkeypatch.context() as patched:
            patched.setattr(exactly_once_sink, step, failing_after(getattr(exactly_once_sink, step), 1))
            with pytest.raises(PySparkException, match="the driver dies"):
                app.run(spark)
        app.start(spark)
        app.process_all_available()
    for number, moment in enumerate(MOMENTS, 1 + len(STEPS)):
        flag = tmp_path / "flag"
        flag.write_text(moment)
        with monkeypatch.context() as patched:
            patched.setattr(exactly_once_routing, "WriteTask", dying(flag))
            cluster.feed(cuts.batch(number))
            app.process_all_available()
        assert not flag.exists(), "nobody was killed"
    app.stop()
    texts_topic, counts_topic = f"{name}-texts", f"{name}-counts"
    assert as_stream(cluster.read(texts_topic)) == as_stream(cuts.expected(topology, texts_topic))
    assert as_table(cluster.read(counts_topic)) == as_table(cuts.expected(topology, counts_topic))
