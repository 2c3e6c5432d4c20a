"""A Spark cluster on this machine: a master and workers, as processes from the jars that PySpark brings."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyspark

from tests.support.requirements import require
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HOME = Path(pyspark.__file__).parent
_JARS = str(_HOME / "jars" / "*")
# What Spark's start scripts, which PySpark has only for Unix shells, would set.
_SPARK = {"SPARK_HOME": str(_HOME), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def standalone(folder: Path, *, workers: int, environment: Mapping[str, str]) -> Iterator[Standalone]:
    """A master, once all workers have reported to it."""
    with ExitStack() as running:
        cluster = Standalone(folder, environment, running)
        for _ in range(workers):
            cluster.add_worker()
        cluster.wait_for_workers()
        yield cluster


class Standalone:
    """A running master; workers may come and go."""

    def __init__(self, folder: Path, environment: Mapping[str, str], running: ExitStack) -> None:
        self._folder = folder
        self._environment = environment
        self._running = running
        self._master = self._started("master", "master.Master", "127.0.0.1", ["--port", "0"])
        self.workers: list[SparkProcess] = []
        said = r"Starting Spark master at (spark://\S+)"
        self.address = wait_until(lambda: self._master.says(said) or "", "Spark's master", within_s=180)

    def add_worker(self) -> None:
        """One more, with a core; it reports to the master by itself."""
        index = len(self.workers)
        work = str(self._folder / f"work-{index}")
        # Spark runs no speculative copy on the host of the original: Linux has many names for this machine.
        host = f"127.0.0.{index + 1}" if sys.platform == "linux" else "127.0.0.1"
        options = ["--cores", "1", "--memory", "512m", "--work-dir", work, self.address]
        self.workers.append(self._started(f"worker-{index}", "worker.Worker", host, options))

    def wait_for_workers(self) -> None:
        """Until all that were ever added have reported."""
        wait_until(
            lambda: self._master.count(r"Registering worker") >= len(self.workers), "Spark's workers", within_s=180
        )

    def _started(self, name: str, kind: str, host: str, options: list[str]) -> SparkProcess:
        return self._running.enter_context(
            SparkProcess(self._folder, name, kind, host, options, self._environment),
        )


class SparkProcess:
    """A master or a worker."""

    def __init__(
        self, folder: Path, name: str, kind: str, host: str, options: list[str], environment: Mapping[str, str]
    ) -> None:
        self._log_path = folder / f"{name}.log"
        command = [require("java", "Spark needs Java 17"), "-Xmx256m", "-cp", _JARS]
        listening = ["--host", host, "--webui-port", "0"]
        with self._log_path.open("wb") as log:
            self._process = subprocess.Popen(
                [*command, f"org.apache.spark.deploy.{kind}", *listening, *options],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **_SPARK, **environment},
                cwd=folder,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def says(self, pattern: str) -> str | None:
        assert self._process.poll() is None, self._log_path.read_text(errors="replace")[-3000:]
        found = re.search(pattern, self._log_path.read_text(errors="replace"))
        return None if found is None else found[1]

    def count(self, pattern: str) -> int:
        return len(re.findall(pattern, self._log_path.read_text(errors="replace")))

    def kill(self) -> None:
        """End it without a chance to tidy up: kill -9."""
        self._process.kill()
        self._process.wait(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
