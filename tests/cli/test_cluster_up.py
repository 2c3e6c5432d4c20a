"""`millstream cluster up`: a cluster of processes, and the commands that look at it and move things around."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.requirements import PROJECT_ROOT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PYTHONPATH = os.pathsep.join(filter(None, (str(PROJECT_ROOT / "src"), os.environ.get("PYTHONPATH", ""))))


class Up:
    """The command in a process of its own."""

    def __init__(self, directory: Path, brokers: int) -> None:
        directory.mkdir(exist_ok=True)
        self.output = directory / "up.out"
        self.errors = directory / "up.err"
        command = [sys.executable, "-m", "millstream.cli.main", "cluster", "up", "--port", "0"]
        command += ["--brokers", str(brokers), "--data-dir", str(directory / "cluster")]
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                command, stdout=output, stderr=errors, env=os.environ | {"PYTHONPATH": PYTHONPATH}
            )

    def ready(self) -> str:
        def line() -> str | None:
            assert self.process.poll() is None, self.errors.read_text()[-3000:]
            text = self.output.read_text()
            return text if text.endswith("\n") else None

        return wait_until(line, "the ready line", within_s=90)

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(90)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    running = Up(tmp_path_factory.mktemp("up"), 4)
    try:
        running.ready()
        yield running
        assert running.stop() == 0, running.errors.read_text()
    finally:
        if running.process.poll() is None:
            running.process.send_signal(signal.SIGTERM)
            running.process.wait(90)


@pytest.fixture(scope="module")
def servers(up: Up) -> str:
    return up.ready().split()[1]


def run(servers: str, *words: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "millstream.cli.main", *words, "--bootstrap-server", servers, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": PYTHONPATH},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def replicas(servers: str, topic: str) -> dict[int, list[int]]:
    return {row["partition"]: row["replicas"] for row in run(servers, "topic", "describe", topic)}


@pytest.mark.slow
def test_it_says_where_its_nodes_are(up: Up, servers: str) -> None:
    assert len(servers.split(",")) == 4
    assert len(re.findall(r"node-\d=\d+", up.ready())) == 4
    rows = run(servers, "cluster", "describe")
    assert [row["broker"] for row in rows] == [1, 2, 3, 4]


@pytest.mark.slow
def test_the_quorum_has_one_leader_and_three_voters_behind_it(servers: str) -> None:
    for server in servers.split(","):
        rows = run(server, "cluster", "quorum")
        assert sorted(row["role"] for row in rows) == ["leader", "voter", "voter", "voter"]


@pytest.mark.slow
def test_partitions_move_drain_and_get_their_leaders_back(servers: str) -> None:
    run(servers, "topic", "create", "orders", "--partitions", "4", "--replicas", "3")
    run(servers, "cluster", "reassign", "orders", "--to", "1,2,3", "--wait")
    assert all(sorted(each) == [1, 2, 3] for each in replicas(servers, "orders").values())
    run(servers, "cluster", "drain", "2")
    assert all(2 not in each for each in replicas(servers, "orders").values())
    run(servers, "cluster", "reassign", "orders:0", "--to", "1,2", "--replicas", "2", "--wait")
    assert replicas(servers, "orders")[0] == [1, 2]
    assert run(servers, "cluster", "reassign") == []
    run(servers, "cluster", "elect")
    rows = run(servers, "topic", "describe", "orders")
    assert all(row["leader"] == row["replicas"][0] for row in rows)


@pytest.mark.slow
def test_a_stopped_cluster_comes_back_with_what_it_had(tmp_path: Path) -> None:
    for turn in range(2):
        running = Up(tmp_path, 3)
        try:
            servers = running.ready().split()[1]
            if turn == 0:
                run(servers, "topic", "create", "kept", "--replicas", "3")
            assert list(replicas(servers, "kept")) == [0]
            assert running.stop() == 0, running.errors.read_text()
        finally:
            if running.process.poll() is None:
                running.process.terminate()
                running.process.wait(90)
