"""Brokers that are restarted and drivers that are killed under an application on `local[2]`: the same, exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.client.offsets import EARLIEST, list_offsets
from millstream.client.sync import SyncClient
from millstream.spark import exactly_once_sink
from millstream.streams import Application
from tests.streams_spark.app_process import WAYS, AppProcess, Work
from tests.streams_spark.running_app import COUNTED, PEEKED, REDUCED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.arrow.conftest import Embedded
    from tests.support.millstream_process import MillstreamProcess


@pytest.mark.java
@pytest.mark.slow
def test_a_driver_that_is_killed_and_started_again(embedded: Embedded, fresh_name: str, tmp_path: Path) -> None:
    """With all written in an open transaction; test_standalone_app.py has a commit that Spark does not know of."""
    work = Work(embedded.bootstrap_servers, fresh_name, 3)
    with AppProcess("local[2]", embedded.bootstrap_servers, fresh_name, tmp_path) as app:
        app.start()
        work.feed(0)
        app.works_off(work)
        app.meets("driver-wrote")
        work.feed(1, REDUCED)
        app.dies()
        assert not work.is_done()
        app.start()
        work.feed(1, COUNTED)
        work.feed(2)
        app.works_off(work)
        app.stop()
    work.check()
    assert (tmp_path / PEEKED).stat().st_size > work.records(REDUCED), "what is tried again calls functions again"


def test_a_broker_that_is_restarted_and_killed(
    spark: SparkSession,
    fresh_millstream: Callable[..., MillstreamProcess],
    fresh_name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between two micro-batches, and before the last steps of one; neither queries nor the view of a store notice."""
    broker = fresh_millstream()
    broker.start()
    work = Work(broker.bootstrap_servers, fresh_name, 6, chained=True)
    # Some micro-batches are worked off by Spark, and some by the driver: the state goes to and fro.
    settings = {"state.dir": tmp_path, "direct.records.max": 25, "default.api.timeout.ms": 240_000}
    app = Application(work.topology, fresh_name, bootstrap_servers=broker.bootstrap_servers, settings=settings)
    with app.start(spark):
        view: Any = app.store("pairs")
        work.feed(0)
        app.process_all_available()
        broker.restart()
        work.feed(1)
        app.process_all_available()

        def kill() -> None:
            broker.kill()
            broker.start()

        troubles = (("commit_offsets_in", broker.restart), ("commit_offsets_in", kill), ("end_transaction", kill))
        for number, (step, trouble) in enumerate(troubles, 2):
            with monkeypatch.context() as patched:
                happened = troubled(patched, step, trouble)
                work.feed(number)
                app.process_all_available()
            assert happened, step
        kill()
        work.feed(5)
        app.process_all_available()
        assert work.is_done()
        view.wait_until_current(60)
        assert sum(count for _, count in view.all()) == sum(last_counts(work).values())
    work.check()
    assert first_offsets(work) == [0] * WAYS, "what was read of an internal topic is not taken from it"


def troubled(patched: pytest.MonkeyPatch, step: str, trouble: Callable[[], object]) -> list[str]:
    """Have a step of the next transaction meet this, once; a list that says when it has."""
    call = getattr(exactly_once_sink, step)
    happened: list[str] = []

    async def called(*args: Any, **kwargs: Any) -> Any:
        if not happened:
            happened.append(step)
            trouble()
        return await call(*args, **kwargs)

    patched.setattr(exactly_once_sink, step, called)
    return happened


def first_offsets(work: Work) -> list[int]:
    places = [(f"{work.name}-pairs-repartition", index) for index in range(WAYS)]
    with SyncClient({"bootstrap.servers": work.cluster.servers}) as client:
        return [each.offset for each in client.run(list_offsets, dict.fromkeys(places, EARLIEST)).values()]


def last_counts(work: Work) -> dict[bytes | None, int]:
    return {key: int.from_bytes(value or b"") for key, value, _ in work.cluster.read(f"{work.name}-pairs")}
