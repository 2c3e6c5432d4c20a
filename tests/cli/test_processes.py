"""What a shell sees: readers that go away, Ctrl-C, how long a command takes, the broker's one line."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import environment, run_command
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.millstream_process import MillstreamProcess

COMMAND = (sys.executable, "-m", "millstream.cli.main")


@pytest.fixture
def filled(millstream: MillstreamProcess, fresh_name: str) -> str:
    """A topic with a thousand lines."""
    servers = millstream.bootstrap_servers
    assert run_command("topic", "create", fresh_name, servers=servers).code == 0
    assert run_command("produce", fresh_name, servers=servers, stdin="line\n" * 1000).code == 0
    return fresh_name


@pytest.fixture
def started(millstream: MillstreamProcess) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts commands against Millstream; what still runs at the end is killed."""
    running: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*COMMAND, *words],
            env=environment(millstream.bootstrap_servers),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def test_a_reader_that_has_enough_ends_the_command_quietly(
    started: Callable[..., subprocess.Popen[bytes]], filled: str
) -> None:
    process = started("consume", filled, "--from-beginning")
    assert process.stdout is not None
    assert process.stdout.readline() == b"line\n"
    process.stdout.close()
    # All records are printed already: it must notice by itself that nobody reads any more.
    assert process.wait(20) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_ctrl_c_ends_the_command_quietly(started: Callable[..., subprocess.Popen[bytes]], filled: str) -> None:
    process = started("consume", filled, "--from-beginning")
    assert process.stdout is not None
    assert process.stdout.readline() == b"line\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (130, b"")


def test_a_line_that_is_typed_is_sent_before_the_next(
    started: Callable[..., subprocess.Popen[bytes]], millstream: MillstreamProcess, filled: str
) -> None:
    process = started("produce", filled)
    assert process.stdin is not None
    process.stdin.write(b"typed\n")
    process.stdin.flush()

    def arrived() -> bool:
        last = run_command("consume", filled, "--offset", "-1", "--exit", servers=millstream.bootstrap_servers)
        return last.out == "typed\n"

    wait_until(arrived, "the line to arrive while the input is still open", within_s=20)
    process.communicate(timeout=20)
    assert process.returncode == 0


def test_the_list_of_topics_takes_well_under_half_a_second_of_work(millstream: MillstreamProcess) -> None:
    """Measured as CPU time of the command: a busy machine makes it wait, but must not make it work more."""
    import resource

    def cpu_s() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime

    took = []
    for _ in range(3):
        before = cpu_s()
        assert run_command("topic", "list", servers=millstream.bootstrap_servers).code == 0
        took.append(cpu_s() - before)
    assert min(took) < 0.4


def test_a_broker_says_one_line_when_it_accepts_clients(
    fresh_millstream: Callable[..., MillstreamProcess],
) -> None:
    broker = fresh_millstream()
    broker.start()
    assert run_command("topic", "list", servers=broker.bootstrap_servers).code == 0
    assert broker.stdout().count("\n") == 1
    assert broker.stop() == 0


def test_kafka_server_start_takes_a_properties_file(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"broker.id=5\nzookeeper.connect=localhost:2181\nlog.dirs={tmp_path / 'data'}\n")
    with subprocess.Popen(
        [*COMMAND, "kafka-server-start", str(properties), "--override", "listeners=PLAINTEXT://127.0.0.1:0"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            assert process.stdout is not None
            ready = process.stdout.readline().decode()
            assert "node=5" in ready
            address = ready.partition("PLAINTEXT://")[2].split()[0]
            assert run_command("topic", "list", servers=address).code == 0
        finally:
            process.terminate()
            assert process.wait(30) == 0


def test_a_directory_in_use_is_refused_with_a_sentence(
    fresh_millstream: Callable[..., MillstreamProcess],
) -> None:
    broker = fresh_millstream()
    broker.start()
    second = run_command("broker", "--listen", "127.0.0.1:0", "--data-dir", str(broker.data_directory))
    assert second.code == 1
    assert "another process" in second.err


def test_a_directory_is_formatted_once_and_started_with_its_id(
    fresh_millstream: Callable[..., MillstreamProcess], tmp_path: Path
) -> None:
    cluster_id, data = "MkU3OEVBNTcwNTJENDM2Qg", tmp_path / "data"
    assert cluster_id in run_command("format", str(data), "--cluster-id", cluster_id).out
    again = run_command("format", str(data), "--cluster-id", cluster_id)
    assert again.code != 0
    assert "already" in again.err
    assert run_command("format", str(tmp_path / "other"), "--cluster-id", "short").code == 2
    broker = fresh_millstream(data_directory=data)
    broker.start()
    assert f"cluster={cluster_id}" in broker.stdout()
    broker.stop()
    printed = run_command("kafka-properties", str(data)).out
    assert "node.id=1" in printed.splitlines()
    assert f"log.dirs={data}" in printed.splitlines()


def test_time_is_not_lost_on_a_dead_first_server(millstream: MillstreamProcess) -> None:
    started_at = time.monotonic()
    ended = run_command("topic", "list", "-b", f"127.0.0.1:1,{millstream.bootstrap_servers}")
    assert ended.code == 0
    assert time.monotonic() - started_at < 8
