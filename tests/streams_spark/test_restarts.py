"""Brokers that are restarted and drivers that are killed under an application on `local[2]`: the same, exactly once.

The driver on Apache Kafka, here; a driver on Millstream is killed in test_standalone_app.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.client.offsets import EARLIEST, list_offsets
from millstream.client.sync import SyncClient
from millstream.spark import exactly_once_sink
from millstream.streams import Application
from tests.streams_spark.app_process import PATIENCE_S, WAYS, AppProcess, Work
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess


@pytest.mark.java
@pytest.mark.slow
def test_a_driver_that_is_killed_and_started_again(apache_kafka: ApacheKafka, fresh_name: str, tmp_path: Path) -> None:
    """With all written in an open transaction, of what was read from an internal topic that has been purged before.
    test_standalone_app.py has a commit that Spark does not know of."""
    servers = apache_kafka.bootstrap_servers
    work = Work(servers, fresh_name, 5, chained=True)
    often = {"repartition_purge_interval_ms": 20}
    with AppProcess("local[2]", servers, fresh_name, tmp_path, chained=True, **often) as app:
        app.start()
        for number in range(3):
            work.feed(number)
            app.works_off(work)
        wait_until(lambda: sum(first_offsets(work)) > 0, "the internal topic to be purged", within_s=PATIENCE_S)
        app.meets("driver-wrote")
        work.feed(3)
        app.dies()
        assert not work.is_done()
        app.start()
        work.feed(4)
        app.works_off(work)
        app.stop()
    work.check()


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
    settings = {
        "state.dir": tmp_path,
        "direct.records.max": 25,
        "default.api.timeout.ms": 240_000,
        "repartition.purge.interval.ms": 50,
    }
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
        wait_until(lambda: sum(first_offsets(work)) > 0, "the internal topic to be purged", within_s=PATIENCE_S)
    work.check()


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
