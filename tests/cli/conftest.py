"""Commands as people run them: words in, bytes and an exit code out, against Apache Kafka and Millstream."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.requirements import PROJECT_ROOT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.running import RunningBroker

    Run = Callable[..., "Ended"]
    Until = Callable[..., "Ended"]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def environment(servers: str = "") -> dict[str, str]:
    path = os.pathsep.join(filter(None, (str(PROJECT_ROOT / "src"), os.environ.get("PYTHONPATH", ""))))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("KAFKA_")}
    return kept | {"PYTHONPATH": path, "MILLSTREAM_BOOTSTRAP_SERVERS": servers}


def run_command(*words: str, servers: str = "127.0.0.1:1", stdin: str | bytes = "") -> Ended:
    content = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(
        [sys.executable, "-m", "millstream.cli.main", *words],
        input=content,
        capture_output=True,
        env=environment(servers),
        timeout=120,
        check=False,
    )
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture(scope="session", params=[pytest.param("apache_kafka", marks=pytest.mark.java), "millstream"])
def cluster(request: pytest.FixtureRequest) -> RunningBroker:
    """Both, one after the other."""
    found: RunningBroker = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def run(cluster: RunningBroker) -> Run:
    """`run("topic", "list")` against the cluster."""

    def command(*words: str, stdin: str | bytes = "") -> Ended:
        return run_command(*words, servers=cluster.bootstrap_servers, stdin=stdin)

    return command


@pytest.fixture
def until(run: Run) -> Callable[..., Ended]:
    """Run a command until its output is as expected: a change is answered before every broker shows it."""

    def command(expected: Callable[[Ended], bool], *words: str) -> Ended:
        def attempt() -> Ended | None:
            ended = run(*words)
            return ended if ended.code == 0 and expected(ended) else None

        found = wait_until(attempt, f"the expected output of {' '.join(words)}")
        assert found is not None
        return found

    return command


@pytest.fixture
def ok(run: Run) -> Run:
    """The same for commands that must succeed."""

    def command(*words: str, stdin: str | bytes = "") -> Ended:
        ended = run(*words, stdin=stdin)
        assert ended.code == 0, ended
        return ended

    return command
