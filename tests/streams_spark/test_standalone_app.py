"""An application on a master with workers that come and go: executors, a worker, the broker and the driver are killed.

What is killed is killed with `kill -9`, in the middle of a micro-batch where it says so. In the end all is as the test
driver says, exactly once.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark.standalone import Standalone, standalone
from tests.spark.standalone_accidents import executor_of
from tests.streams_spark.app_process import ENVIRONMENT, PATIENCE_S, PATIENT, AppProcess, Work
from tests.streams_spark.running_app import COUNTED, PEEKED, REDUCED
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.millstream_process import MillstreamProcess

pytestmark = [
    pytest.mark.java,
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="an executor's process is found in /proc"),
]


class Workers:
    """The cluster's executors, as processes: each works in a folder of its worker's."""

    def __init__(self, cluster: Standalone, folder: Path) -> None:
        self.cluster = cluster
        self._folder = folder

    def executors(self) -> dict[int, Path]:
        """The process ids, and where each works."""
        found = {}
        for process in Path("/proc").iterdir():
            if process.name.isdecimal() and executor_of(process) is not None:
                try:
                    place = Path(os.readlink(process / "cwd"))
                except OSError:
                    continue  # it has just ended
                if place.is_relative_to(self._folder):
                    found[int(process.name)] = place
        return found

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.executors()) == count, f"{count} executors", within_s=PATIENCE_S, every_s=0.5)

    def lose(self, index: int) -> None:
        """A worker and its executor at once, as if their machine had failed."""
        self.cluster.workers[index].kill()
        for process, place in self.executors().items():
            if place.is_relative_to(self._folder / f"work-{index}"):
                os.kill(process, signal.SIGKILL)


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[Workers]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    with standalone(folder, workers=2, environment=ENVIRONMENT) as cluster:
        yield Workers(cluster, folder)


def test_whatever_is_killed_or_added_the_result_is_the_same(
    fresh_millstream: Callable[..., MillstreamProcess], fresh_name: str, workers: Workers, tmp_path: Path
) -> None:
    broker = fresh_millstream()
    broker.start()
    work = Work(broker.bootstrap_servers, fresh_name, 4)
    # Every micro-batch is a job of Spark's, however small it is.
    place = (workers.cluster.address, broker.bootstrap_servers, fresh_name, tmp_path)
    with AppProcess(*place, direct_records_max=0, **PATIENT) as app:
        app.start()
        work.feed(0)
        app.works_off(work)
        # Each engine loses an executor, with what it had in memory.
        accidents = ("executor-wrote", "executor-works")
        for accident in accidents:
            app.meets(accident)
        work.feed(1)
        app.works_off(work)
        assert all(app.has_met(accident) for accident in accidents)
        # Their workers have started others, and one more comes with a new worker.
        workers.cluster.add_worker()
        workers.wait_for(3)
        workers.lose(0)
        broker.kill()
        broker.start()
        work.feed(2)
        app.works_off(work)
        # It is committed, and Spark does not know.
        app.meets("driver-committed")
        work.feed(3, COUNTED)
        app.dies()
        assert work.is_done()
        app.start()
        work.feed(3, REDUCED)
        app.works_off(work)
        engines = app.stop()
    assert [said.partition(",")[0] for said in engines] == ["0: spark", "1: python"]
    work.check()
    assert (tmp_path / PEEKED).stat().st_size > work.records(REDUCED), "what is tried again calls functions again"
