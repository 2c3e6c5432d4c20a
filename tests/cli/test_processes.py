"""What a shell sees: readers that go away, Ctrl-C, what a command loads, the broker's one line."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.cli.main import main
from tests.cli.conftest import environment, run_command
from tests.support.alone import run_alone
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    assert process.wait(60) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_ctrl_c_ends_the_command_quietly(started: Callable[..., subprocess.Popen[bytes]], filled: str) -> None:
    process = started("consume", filled, "--from-beginning")
    assert process.stdout is not None
    assert process.stdout.readline() == b"line\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"")


def test_ctrl_c_while_it_prints_ends_the_command_quietly(
    started: Callable[..., subprocess.Popen[bytes]], millstream: MillstreamProcess, filled: str
) -> None:
    """More than a pipe holds, and nobody reads on: the command is stopped in the middle of a write."""
    many = ("x" * 1000 + "\n") * 2000
    assert run_command("produce", filled, servers=millstream.bootstrap_servers, stdin=many).code == 0
    process = started("consume", filled, "--from-beginning")
    assert process.stdout is not None
    assert process.stdout.readline() == b"line\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
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

    wait_until(arrived, "the line to arrive while the input is still open")
    process.communicate(timeout=60)
    assert process.returncode == 0


def loaded_for_the_list_of_topics(servers: str) -> list[str]:
    assert main(["topic", "list", "-b", servers]) == 0
    return sorted(sys.modules)


def test_the_list_of_topics_loads_only_what_it_needs(millstream: MillstreamProcess) -> None:
    """A command's time is mostly what it imports (bench measures the start)."""
    loaded = run_alone(loaded_for_the_list_of_topics, millstream.bootstrap_servers)
    assert "millstream.client.admin.topics" in loaded
    heavy = (
        "millstream.broker",
        "millstream.log",
        "millstream.streams",
        "numpy",
        "pyarrow",
        "pyspark",
        "pandas",
        "rich",
    )
    assert [name for name in heavy if name in loaded] == []


def test_a_broker_says_one_line_when_it_accepts_clients(
    fresh_millstream: Callable[..., MillstreamProcess],
) -> None:
    broker = fresh_millstream()
    broker.start()
    assert run_command("topic", "list", servers=broker.bootstrap_servers).code == 0
    assert broker.stdout().count("\n") == 1
    assert broker.stop() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_broker_stops_at_once_although_clients_wait(
    fresh_millstream: Callable[..., MillstreamProcess], number: signal.Signals
) -> None:
    """A reader in a long poll, half a request and a silent connection: all are let go of, and the stop is clean."""
    broker = fresh_millstream()
    broker.start()
    servers = broker.bootstrap_servers
    assert run_command("topic", "create", "orders", servers=servers).code == 0
    place = ("127.0.0.1", broker.port)
    with (
        socket.create_connection(place) as silent,
        socket.create_connection(place) as half,
        subprocess.Popen(
            [*COMMAND, "consume", "orders"], env=environment(servers), stderr=subprocess.DEVNULL
        ) as reader,
    ):
        try:
            half.send(b"\x00\x00\x10\x00")
            wait_until(
                lambda: reader.poll() is not None or _connections_to(broker.port) >= 3, "the reader's connection"
            )
            os.kill(broker.pid, number)
            assert broker.wait() == 0
            assert (silent.recv(1), half.recv(1)) == (b"", b"")
        finally:
            reader.kill()
    assert (broker.data_directory / ".kafka_cleanshutdown").exists()


def _connections_to(port: int) -> int:
    """How many connections this machine has to the port."""
    wanted = f"0100007F:{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[2] == wanted and row[3] == "01" for row in rows)


@contextmanager
def ready(*words: str) -> Iterator[str]:
    """A command that runs a broker: the line that says it is ready. It is stopped in the end, and stops cleanly."""
    with subprocess.Popen(
        [*COMMAND, *words], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().decode()
        finally:
            process.terminate()
            assert process.wait(90) == 0


def address_in(line: str) -> str:
    return line.partition("PLAINTEXT://")[2].split()[0]


def test_kafka_server_start_takes_a_properties_file(tmp_path: Path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text(f"broker.id=5\nzookeeper.connect=localhost:2181\nlog.dirs={tmp_path / 'data'}\n")
    with ready("kafka-server-start", str(properties), "--override", "listeners=PLAINTEXT://127.0.0.1:0") as line:
        assert "node=5" in line
        assert run_command("topic", "list", servers=address_in(line)).code == 0


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_a_broker_listens_on_an_ipv6_address_and_answers_with_it(tmp_path: Path) -> None:
    with ready("broker", "--listen", "[::1]:0", "--data-dir", str(tmp_path / "data")) as line:
        assert address_in(line).startswith("[::1]:")
        assert "::1" in run_command("cluster", "describe", "--json", servers=address_in(line)).out


@pytest.mark.parametrize("option", ["--listen", "--metrics"])
def test_an_address_in_use_is_refused_with_a_sentence(tmp_path: Path, option: str) -> None:
    words = {"--listen": "127.0.0.1:0", "--data-dir": str(tmp_path / "data")}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        words[option] = f"127.0.0.1:{taken.getsockname()[1]}"
        refused = run_command("broker", *(word for pair in words.items() for word in pair))
    assert refused.code == 1
    assert refused.err == f"millstream: {words[option]} cannot be listened on: Address already in use\n"


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


def test_a_dead_first_server_is_passed_over(millstream: MillstreamProcess) -> None:
    ended = run_command("topic", "list", "-b", f"127.0.0.1:1,{millstream.bootstrap_servers}")
    assert ended.code == 0
