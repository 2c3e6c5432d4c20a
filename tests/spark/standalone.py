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
def standalone(folder: Path, *, workers: int, environment: Mapping[str, str]) -> Iterator[str]:
    """The master's address, once all workers have reported to it."""
    with ExitStack() as running:
        master = _Process(folder, "master", "master.Master", "127.0.0.1", ["--port", "0"], environment)
        running.enter_context(master)
        address: str = wait_until(
            lambda: master.says(r"Starting Spark master at (spark://\S+)"), "Spark's master", within_s=180
        )
        for index in range(workers):
            options = ["--cores", "1", "--memory", "512m", "--work-dir", str(folder / f"work-{index}"), address]
            # Spark runs no speculative copy on the host of the original: Linux has many names for this machine.
            host = f"127.0.0.{index + 1}" if sys.platform == "linux" else "127.0.0.1"
            running.enter_context(_Process(folder, f"worker-{index}", "worker.Worker", host, options, environment))
        wait_until(lambda: master.count(r"Registering worker") >= workers, "Spark's workers", within_s=180)
        yield address


class _Process:
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

    def says(self, pattern: str) -> str | None:
        assert self._process.poll() is None, self._log_path.read_text(errors="replace")[-3000:]
        found = re.search(pattern, self._log_path.read_text(errors="replace"))
        return None if found is None else found[1]

    def count(self, pattern: str) -> int:
        return len(re.findall(pattern, self._log_path.read_text(errors="replace")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(30)
