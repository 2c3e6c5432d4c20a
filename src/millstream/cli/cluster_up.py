"""`millstream cluster up`: a cluster of processes on this machine, for a day's work and for tests of what fails.

Every node is `millstream broker` with a server.properties of its own, which is written once and then left alone: any
node can be stopped, changed and started again by hand. The nodes are brokers and controllers in one, as many voters as
there are brokers. Ctrl-C stops all of them, one after the other.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.cli.declare import UsageError
from millstream.cli.output import say
from millstream.runtime.free_ports import free_ports

if TYPE_CHECKING:
    from types import FrameType

HOST = "127.0.0.1"
START_S = 60.0
STOP_S = 60.0
LOOK_S = 0.02
READY = "ready: "
DEFAULT_BROKERS = 3
DEFAULT_PORT = 9092


@dataclass(slots=True)
class NodeProcess:
    """One node: its directory, and while it runs its process."""

    id: int
    directory: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def properties(self) -> Path:
        return self.directory / "server.properties"

    @property
    def output(self) -> Path:
        return self.directory / "broker.out"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    def launch(self) -> None:
        command = [sys.executable, "-m", "millstream.cli.main", "broker", str(self.properties)]
        with self.output.open("wb") as output, self.log.open("ab") as log:
            # A session of its own: Ctrl-C comes to us alone, and we stop them in order.
            self.process = subprocess.Popen(  # noqa: S603  # our own program
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=log, start_new_session=True
            )

    def ready_line(self) -> str | None:
        text = self.output.read_text(errors="replace")
        return text.strip() if text.startswith(READY) and text.endswith("\n") else None

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None


def run_cluster(brokers: int | None, data_dir: str, port: int | None) -> int:
    """Start all nodes, say that they are ready, and wait for a signal; the exit code."""
    nodes = prepare(brokers, Path(data_dir), port)
    stopping = _Stopping()
    try:
        for node in nodes:
            node.launch()
        if not _wait_until_ready(nodes, stopping):
            return 0 if stopping.asked else 1
        servers = ",".join(_client_address(node) for node in nodes)
        pids = " ".join(f"node-{node.id}={node.process.pid}" for node in nodes if node.process is not None)
        sys.stdout.write(f"ready: {servers} {pids} data={data_dir}\n")
        sys.stdout.flush()
        return _watch(nodes, stopping)
    finally:
        _stop(nodes)


def prepare(brokers: int | None, data_dir: Path, port: int | None) -> list[NodeProcess]:
    """Directories with their properties, formatted as one cluster where they are new.

    A cluster that is there keeps its number of nodes and its ports: they stand in the files, and its voters in its
    metadata. Whoever asks for others is told so, before anything starts.
    """
    if brokers is not None and brokers < 1:
        raise UsageError("a cluster has one broker at least")
    there = len(list(data_dir.glob("node-*/server.properties")))
    count = brokers or there or DEFAULT_BROKERS
    nodes = [NodeProcess(each, data_dir / f"node-{each}") for each in range(1, count + 1)]
    if not there:
        _write_properties(nodes, DEFAULT_PORT if port is None else port)
    elif there != count:
        raise UsageError(
            f"{data_dir} is a cluster of {_nodes(there)}, and --brokers {count} cannot change that; "
            f"leave --brokers out, or name another directory"
        )
    missing = [node.id for node in nodes if not node.properties.exists()]
    if missing:
        raise UsageError(f"{data_dir} is not whole: node {missing[0]} has no server.properties")
    if there and port:
        _same_port(nodes[0], port)
    _format(nodes)
    return nodes


def _nodes(count: int) -> str:
    return f"{count} nodes" if count > 1 else "one node"


def _same_port(first: NodeProcess, port: int) -> None:
    address = _client_address(first)
    if address.rpartition(":")[2] != str(port):
        raise UsageError(
            f"the first node listens on {address}, as {first.properties} says, and --port {port} cannot change that; "
            f"leave --port out, or change the files"
        )


def _write_properties(nodes: list[NodeProcess], port: int) -> None:
    ports = list(range(port, port + len(nodes))) if port else free_ports(HOST, len(nodes))
    # The controllers' ports are nobody's business but theirs: a thousand above, or any that are free.
    controllers = [each + 1_000 for each in ports] if port else free_ports(HOST, len(nodes))
    voters = ",".join(f"{node.id}@{HOST}:{at}" for node, at in zip(nodes, controllers, strict=True))
    for node, client_port, controller_port in zip(nodes, ports, controllers, strict=True):
        node.directory.mkdir(parents=True, exist_ok=True)
        lines = {
            "process.roles": "broker,controller",
            "node.id": str(node.id),
            "listeners": f"PLAINTEXT://{HOST}:{client_port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{client_port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.quorum.voters": voters,
            "log.dirs": str((node.directory / "data").absolute()),
            "default.replication.factor": str(min(len(nodes), 3)),
            "min.insync.replicas": "2" if len(nodes) > 2 else "1",
        }
        node.properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))


def _format(nodes: list[NodeProcess]) -> None:
    from millstream.broker.storage_format import (
        NotFormatted,
        StorageLayout,
        StorageRefused,
        format_storage,
        load_storage,
    )
    from millstream.cli.connect import read_properties
    from millstream.runtime.real import RealPorts

    ports = RealPorts()
    cluster_id = None
    empty = []
    try:
        for node in nodes:
            layout = StorageLayout.of(read_properties(str(node.properties))["log.dirs"].split(","))
            try:
                cluster_id = load_storage(ports, layout, node_id=node.id, cluster_id=cluster_id).cluster_id
            except NotFormatted:
                empty.append((node.id, layout))
        for node_id, layout in empty:
            cluster_id = cluster_id or str(ports.random.uuid())
            format_storage(ports, layout, cluster_id=cluster_id, node_id=node_id, controller_endpoint=None)
    except (StorageRefused, OSError) as error:
        raise UsageError(str(error)) from error


def _client_address(node: NodeProcess) -> str:
    from millstream.cli.connect import read_properties

    return read_properties(str(node.properties))["advertised.listeners"].partition("://")[2]


class _Stopping:
    """SIGINT and SIGTERM ask for a stop."""

    def __init__(self) -> None:
        self.asked = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._ask)

    def _ask(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True


def _wait_until_ready(nodes: list[NodeProcess], stopping: _Stopping) -> bool:
    deadline_s = time.monotonic() + START_S
    while not stopping.asked:
        for node in nodes:
            if node.has_ended:
                say(f"node {node.id} ended; its last words are in {node.log}:\n{_last_words(node)}")
                return False
        if all(node.ready_line() for node in nodes):
            return True
        if time.monotonic() > deadline_s:
            waiting = ", ".join(str(node.id) for node in nodes if not node.ready_line())
            say(f"not ready after {START_S:.0f} s: node {waiting}; see broker.log in its directory")
            return False
        time.sleep(LOOK_S)
    return False


def _watch(nodes: list[NodeProcess], stopping: _Stopping) -> int:
    told: set[int] = set()
    while not stopping.asked:
        for node in nodes:
            if node.has_ended and node.id not in told:
                told.add(node.id)
                say(f"node {node.id} ended; see {node.log}")
        if len(told) == len(nodes):
            return 1
        time.sleep(LOOK_S * 5)
    return 0


def _stop(nodes: list[NodeProcess]) -> None:
    """All at once: each hands over what it leads to those that are still there."""
    running = [node.process for node in nodes if node.process is not None and not node.has_ended]
    for process in running:
        process.terminate()
    deadline_s = time.monotonic() + STOP_S
    for process in running:
        try:
            process.wait(max(deadline_s - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _last_words(node: NodeProcess) -> str:
    return node.log.read_text(errors="replace")[-1000:] if node.log.exists() else ""
