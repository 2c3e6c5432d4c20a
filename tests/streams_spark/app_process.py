"""An application in a process of its own (running_app.py), fed and watched from outside, and compared in the end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Self

from millstream.client.errors import ClientError
from millstream.client.groups import committed_offsets
from millstream.client.offsets import LATEST, list_offsets
from millstream.client.sync import SyncClient
from tests.streams_spark.cutting import Cuts, as_stream, as_table
from tests.streams_spark.running_app import INPUTS, OUTPUTS, topology_of
from tests.streams_spark.test_application import Cluster, with_prefix
from tests.streams_spark.test_faults import both
from tests.support.requirements import PROJECT_ROOT, require
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.streams.memory_topics import Stored

WAYS = 4
# Two Sparks on two cores, each with executors that start anew.
PATIENCE_S = 240
# A broker that is started again between two Sparks is away for longer than usual.
PATIENT = {"default_api_timeout_ms": PATIENCE_S * 1000}
PYTHON_PATH = os.pathsep.join([str(PROJECT_ROOT / "src"), str(PROJECT_ROOT)])
ENVIRONMENT = {"PYTHONPATH": PYTHON_PATH, "PYSPARK_PYTHON": sys.executable}


class Work:
    """Topics, the records that go in bit by bit, and what must come out."""

    def __init__(self, servers: str, name: str, batches: int, *, chained: bool = False) -> None:
        self.cluster = Cluster(servers, name)
        self.name = name
        self.topology = topology_of(name, chained=chained)
        self.cuts = Cuts("work", with_prefix(name, both), batches, ways=WAYS)
        self._counts = ["windows", "pairs"] if chained else ["windows"]
        self._read = [*INPUTS, "pairs-repartition"] if chained else [*INPUTS]
        made = dict.fromkeys((*INPUTS, *OUTPUTS, *self._counts))
        self.cluster.make(*(f"{name}-{each}" for each in made), partitions=WAYS)

    def feed(self, number: int, *inputs: str) -> None:
        """A part of the records, of all inputs or of these."""
        wanted = [f"{self.name}-{each}" for each in inputs or INPUTS]
        records = [(partition, line) for partition, line in self.cuts.batch(number) if line[0] in wanted]
        assert records, "there is nothing to feed"
        self.cluster.feed(records)

    def is_done(self) -> bool:
        """Whether all that is in the inputs was read, and what waits in the internal topic too."""
        try:
            with SyncClient({"bootstrap.servers": self.cluster.servers}) as client:
                return all(self._was_read(client, f"{self.name}-{topic}") for topic in self._read)
        except ClientError:
            return False  # the broker is away, or the internal topic is not made yet

    def _was_read(self, client: SyncClient, topic: str) -> bool:
        places = [(topic, index) for index in range(WAYS)]
        ends = client.run(list_offsets, dict.fromkeys(places, LATEST), read_committed=True)
        read = client.run(committed_offsets, self.name, places, stable=False)
        return all(each.offset == (read[place].offset if place in read else 0) for place, each in ends.items())

    def check(self) -> None:
        """As the driver says: the same records where Python works, the same last value of each key in Spark's own
        operators, and there no count is told twice."""
        for output in ("texts", "sessions"):
            topic = f"{self.name}-{output}"
            assert as_stream(self.cluster.read(topic)) == as_stream(self.cuts.expected(self.topology, topic)), output
        for output in self._counts:
            topic = f"{self.name}-{output}"
            found = self.cluster.read(topic)
            assert as_table(found) == as_table(self.cuts.expected(self.topology, topic)), output
            assert_rising(found)

    def records(self, source: str) -> int:
        """How many went into an input."""
        return len(self.cluster.read(f"{self.name}-{source}"))


def assert_rising(counts: list[Stored]) -> None:
    """A count that came a second time, or went back, would be a micro-batch that was done twice."""
    last: dict[bytes | None, int] = {}
    for key, value, _ in counts:
        assert value is not None
        count = int.from_bytes(value)
        assert count > last.get(key, 0), f"{key!r}: {count} after {last[key]}"
        last[key] = count


class AppProcess:
    """The program with its process group, started as often as needed; it survives nothing but its end."""

    def __init__(
        self, master: str, servers: str, name: str, folder: Path, *, chained: bool = False, **settings: int
    ) -> None:
        require("java", "Spark needs Java 17")
        given = {name.replace("_", "."): value for name, value in settings.items()}
        self._arguments = [master, servers, name, str(folder), json.dumps(given), *(["chained"] if chained else [])]
        self._folder = folder
        self._said = folder / "app.out"
        self._log = folder / "app.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        # Files, no pipes: Python workers outlive a killed driver for a moment, and would hold a pipe open.
        with self._said.open("wb") as stdout, self._log.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.streams_spark.running_app", *self._arguments],
                cwd=self._folder,
                env={**os.environ, **ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    def works_off(self, work: Work) -> None:
        """Wait until it has."""

        def done() -> bool:
            self._check_alive()
            return work.is_done()

        self._wait_until(done, "all records to go through")

    def meets(self, accident: str) -> None:
        """The next time that its moment comes."""
        (self._folder / accident).touch()

    def has_met(self, accident: str) -> bool:
        return not (self._folder / accident).exists()

    def dies(self) -> None:
        """Wait until it was killed."""
        assert self._process is not None
        process = self._process
        self._wait_until(lambda: process.poll() is not None, "the driver to die")
        assert process.returncode == -signal.SIGKILL, self._last_words()

    def stop(self) -> list[str]:
        """The clean end; what runs each sub-topology."""
        assert self._process is not None
        (self._folder / "stop").touch()
        assert self._process.wait(PATIENCE_S) == 0, self._last_words()
        found: list[str] = json.loads(self._said.read_text().splitlines()[-1])
        return found

    def _wait_until(self, condition: Callable[[], bool], what: str) -> None:
        try:
            # Not oftener: asking takes a share of the two cores that all of this runs on.
            wait_until(condition, what, within_s=PATIENCE_S, every_s=0.5)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self._last_words()}") from None

    def _check_alive(self) -> None:
        assert self._process is not None
        assert self._process.poll() is None, self._last_words()

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace")[-6000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30)
