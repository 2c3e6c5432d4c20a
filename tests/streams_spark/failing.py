"""What an application must survive: its driver fails at each step of a micro-batch, and workers are killed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import PySparkException

from millstream.spark import exactly_once_routing, exactly_once_sink
from millstream.streams.lower.membership import Membership
from tests.spark.exactly_once_driver import dying
from tests.spark.test_exactly_once import failing_after

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from millstream.streams import Application
    from tests.streams_spark.cutting import Cuts
    from tests.streams_spark.test_application import Cluster

# Of a transaction, and of a micro-batch that needs none.
STEPS = ("begin", "commit_offsets_in", "end_transaction")
STEPS_AT_LEAST_ONCE = ("_commit",)
MOMENTS = ("before", "after")


def fail_at_each_step(
    app: Application, spark: SparkSession, cluster: Cluster, cuts: Cuts, steps: Sequence[str] = STEPS
) -> None:
    """The first micro-batch goes well, each other is done up to a step and then again; it runs when this is over."""
    guarantee = "exactly_once_v2" if steps == STEPS else "at_least_once"
    app.start(spark, guarantee=guarantee)
    cluster.feed(cuts.batch(0))
    app.process_all_available()
    for number, step in enumerate(steps, 1):
        app.stop()
        cluster.feed(cuts.batch(number))
        with pytest.MonkeyPatch.context() as patched:
            # Without a transaction offsets go through the application's membership.
            holder = exactly_once_sink if steps == STEPS else Membership
            patched.setattr(holder, step, failing_after(getattr(holder, step), 1))
            with pytest.raises(PySparkException, match="the driver dies"):
                app.run(spark, guarantee=guarantee)
        app.start(spark, guarantee=guarantee)
        app.process_all_available()


def kill_workers(app: Application, cluster: Cluster, cuts: Cuts, folder: Path, *, first: int) -> None:
    """`kill -9` of a worker that writes: once before it has, and in the next micro-batch after it has."""
    for number, moment in enumerate(MOMENTS, first):
        flag = folder / "flag"
        flag.write_text(moment)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(exactly_once_routing, "WriteTask", dying(flag))
            cluster.feed(cuts.batch(number))
            app.process_all_available()
        assert not flag.exists(), "nobody was killed"
