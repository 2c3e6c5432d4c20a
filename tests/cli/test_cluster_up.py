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

from millstream.cli.cluster_up import prepare
from millstream.cli.declare import UsageError
from tests.support.requirements import PROJECT_ROOT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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

        return wait_until(line, "the ready line", within_s=180)

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


def command(servers: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "millstream.cli.main", *words, "--bootstrap-server", servers, "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"PYTHONPATH": PYTHONPATH},
    )


def run(servers: str, *words: str) -> Any:
    done = command(servers, *words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def until_described(servers: str, topic: str, expected: Callable[[dict[int, Any]], bool]) -> None:
    """Wait until the topic's partitions are as expected: any broker may be asked, and hears of changes in its turn."""
    seen: dict[int, Any] = {}

    def as_expected() -> bool:
        done = command(servers, "topic", "describe", topic)
        if done.returncode == 0:
            seen.clear()
            seen.update({row["partition"]: row for row in json.loads(done.stdout)})
        return done.returncode == 0 and expected(seen)

    try:
        wait_until(as_expected, f"{topic} to be as expected", within_s=120)
    except TimeoutError as late:
        raise AssertionError(f"{late}: {seen}") from late


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
def test_every_broker_names_the_quorums_leader_as_the_controller(servers: str) -> None:
    def agreed() -> bool:
        leaders = [row["node"] for row in run(servers, "cluster", "quorum") if row["role"] == "leader"]
        told = [
            [row["broker"] for row in run(server, "cluster", "describe") if row["controller"]]
            for server in servers.split(",")
        ]
        return told == [leaders] * 4

    wait_until(agreed, "all to name the leader, unless another was elected meanwhile", within_s=120)


@pytest.mark.slow
def test_a_broker_that_is_not_there_is_not_drained(servers: str) -> None:
    refused = command(servers, "cluster", "drain", "9")
    assert refused.returncode == 2
    assert "there is no broker 9" in refused.stderr


@pytest.mark.slow
def test_partitions_move_drain_and_get_their_leaders_back(servers: str) -> None:
    run(servers, "topic", "create", "orders", "--partitions", "4", "--replicas", "3")
    run(servers, "cluster", "reassign", "orders", "--to", "1,2,3", "--wait")
    until_described(servers, "orders", lambda rows: all(sorted(row["replicas"]) == [1, 2, 3] for row in rows.values()))
    run(servers, "cluster", "drain", "2")
    until_described(servers, "orders", lambda rows: all(2 not in row["replicas"] for row in rows.values()))
    run(servers, "cluster", "reassign", "orders:0", "--to", "1,2", "--replicas", "2", "--wait")
    until_described(servers, "orders", lambda rows: rows[0]["replicas"] == [1, 2])
    assert run(servers, "cluster", "reassign") == []
    run(servers, "cluster", "elect")
    until_described(servers, "orders", lambda rows: all(row["leader"] == row["replicas"][0] for row in rows.values()))


@pytest.mark.slow
def test_a_stopped_cluster_comes_back_with_what_it_had(tmp_path: Path) -> None:
    for turn in range(2):
        running = Up(tmp_path, 3)
        try:
            servers = running.ready().split()[1]
            if turn == 0:
                run(servers, "topic", "create", "kept", "--replicas", "3")
            until_described(servers, "kept", lambda rows: list(rows) == [0])
            assert running.stop() == 0, running.errors.read_text()
        finally:
            if running.process.poll() is None:
                running.process.terminate()
                running.process.wait(90)


def test_a_directory_keeps_its_number_of_nodes_and_its_ports(tmp_path: Path) -> None:
    assert [node.id for node in prepare(2, tmp_path, 19092)] == [1, 2]
    for brokers, port in ((None, None), (2, None), (None, 19092), (2, 0)):
        assert [node.id for node in prepare(brokers, tmp_path, port)] == [1, 2]
    for brokers in (1, 3):
        with pytest.raises(UsageError, match=rf"is a cluster of 2 nodes, and --brokers {brokers} cannot change that"):
            prepare(brokers, tmp_path, None)
    with pytest.raises(UsageError, match=r"listens on 127.0.0.1:19092, .* and --port 19192 cannot change that"):
        prepare(2, tmp_path, 19192)
