"""A few `millstream broker` processes, each a broker and a controller; the first three are the quorum's voters.

They can be processes of Apache Kafka's instead, in the same places, with the same config and on directories that we
have formatted: what clients can't do there, they need not do here.

The quorum is dynamic (KIP-853): the others follow it, and can be made voters. Time-outs are short, so that a cluster
notices in seconds what takes it half a minute otherwise.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from millstream.broker.formatting import FormatPlan, format_node
from millstream.protocol.uuid import Uuid
from millstream.runtime.real import RealPorts
from tests.support.apache_kafka import QUICK_START, java_command
from tests.support.ports import answers_api_versions
from tests.support.requirements import PROJECT_ROOT
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tests.cluster_chaos.links import Links, Listens

MILLSTREAM, APACHE_KAFKA = "millstream", "apache-kafka"
NODES = (1, 2, 3, 4, 5)
FIRST_VOTERS = (1, 2, 3)
SETTINGS = {
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "broker.heartbeat.interval.ms": "400",
    "broker.session.timeout.ms": "3000",
    "controller.quorum.fetch.timeout.ms": "1500",
    "controller.quorum.election.timeout.ms": "800",
    "replica.lag.time.max.ms": "3000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    # Leaders go home between faults, so that every fault meets a cluster in the same state.
    "leader.imbalance.check.interval.seconds": "2",
}
# What Apache Kafka has to be given beside: our defaults are `default.replication.factor` and `min.insync.replicas`.
JAVA_SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "transaction.state.log.min.isr": "2",
    "group.consumer.heartbeat.interval.ms": "5000",
}
JAVA_HEAP = ("-Xmx512m", "-Xms256m")
START_S = 90.0


@dataclass
class ChaosNode:
    """One node: its directory, and its process while it has one."""

    id: int
    directory: Path
    links: Links
    process: subprocess.Popen[bytes] | None = None
    is_stopped: bool = False
    starts: int = 0

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def log(self) -> Path:
        return self.directory / "broker.log"

    @property
    def output(self) -> Path:
        return self.directory / f"broker.{self.starts}.out"

    @property
    def where(self) -> Listens:
        return self.links.broker_listener(self.id)

    @property
    def pid(self) -> int:
        assert self.process is not None, f"node {self.id} does not run"
        return self.process.pid

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None and not self.is_stopped

    def launch(self) -> None:
        assert self.process is None, f"node {self.id} runs already"
        self.starts += 1
        path = os.pathsep.join(filter(None, (str(PROJECT_ROOT / "src"), os.environ.get("PYTHONPATH", ""))))
        with self.output.open("wb") as output, self.log.open("ab") as log:
            self.process = self.links.launch(
                self.id,
                [*self._program(), str(self.directory / "server.properties")],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                env=os.environ | {"PYTHONPATH": path},
            )

    def _program(self) -> list[str]:
        return [sys.executable, "-m", "millstream.cli.main", "broker"]

    def until_ready(self) -> None:
        wait_until(self._is_ready, f"node {self.id} to be ready", within_s=START_S, every_s=0.02)

    def _is_ready(self) -> bool:
        assert self.process is not None
        if (code := self.process.poll()) is not None:
            raise AssertionError(f"node {self.id} ended with {code}:\n{self.log.read_text(errors='replace')[-3000:]}")
        return self._says_ready()

    def _says_ready(self) -> bool:
        return self.output.read_text(errors="replace").startswith("ready: ")

    def start(self) -> None:
        self.launch()
        self.until_ready()

    def pause(self) -> None:
        self.is_stopped = True
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        if self.is_stopped and self.process is not None:
            os.kill(self.pid, signal.SIGCONT)
        self.is_stopped = False

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        return self._end(signal.SIGTERM)

    def ended(self, within_s: float) -> int:
        """The exit code of a process that ends of its own accord."""
        assert self.process is not None
        code = self.process.wait(within_s)
        self.process = None
        return code

    def _end(self, how: signal.Signals) -> int:
        process, self.process = self.process, None
        self.is_stopped = False
        if process is None:
            return 0
        process.send_signal(how)
        if how == signal.SIGKILL:
            # A stopped process dies as well, but a stopped one that should end in order would not.
            return process.wait(30)
        try:
            return process.wait(90)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(30)
            raise AssertionError(f"node {self.id} did not stop in order") from None


class JavaNode(ChaosNode):
    """A node of Apache Kafka's."""

    def _program(self) -> list[str]:
        return java_command("kafka.Kafka", jvm_options=(*JAVA_HEAP, *QUICK_START))

    def _says_ready(self) -> bool:
        host, _, port = self.where.told.rpartition(":")
        return answers_api_versions(host, int(port))


KINDS = {MILLSTREAM: ChaosNode, APACHE_KAFKA: JavaNode}


@dataclass
class ChaosCluster:
    """All nodes. `away` are those that nobody should ask now: a fault has them."""

    directory: Path
    links: Links
    seed: int
    numbers: tuple[int, ...] = NODES
    settings: Mapping[str, str] = field(default_factory=dict)
    software: str = MILLSTREAM
    nodes: dict[int, ChaosNode] = field(default_factory=dict)
    away: set[int] = field(default_factory=set)
    cluster_id: str = ""
    directory_ids: dict[int, Uuid] = field(default_factory=dict)

    def __post_init__(self) -> None:
        dice = Random(f"{self.seed} ids")
        self.cluster_id = str(Uuid(b"\x40" + dice.randbytes(15)))
        ids = {node: Uuid(b"\x40" + dice.randbytes(15)) for node in FIRST_VOTERS}
        voters = ",".join(f"{node}@{self.links.controller_listener(node).told}:{ids[node]}" for node in FIRST_VOTERS)
        for number in self.numbers:
            node = self.nodes[number] = KINDS[self.software](number, self.directory / f"node-{number}", self.links)
            node.directory.mkdir(parents=True)
            self.links.own_disk(node.data)
            self._format(node, self._properties(node), voters)

    def _properties(self, node: ChaosNode) -> dict[str, str]:
        broker, controller = node.where, self.links.controller_listener(node.id)
        properties = {
            **SETTINGS,
            **(JAVA_SETTINGS if self.software == APACHE_KAFKA else {}),
            **self.settings,
            "node.id": str(node.id),
            "log.dirs": str(node.data),
            "listeners": f"PLAINTEXT://{broker.bound},CONTROLLER://{controller.bound}",
            "advertised.listeners": f"PLAINTEXT://{broker.told},CONTROLLER://{controller.told}",
            "controller.quorum.bootstrap.servers": ",".join(
                self.links.controller_listener(each).told for each in self.numbers
            ),
        }
        text = "".join(f"{name}={value}\n" for name, value in properties.items())
        (node.directory / "server.properties").write_text(text)
        return properties

    def _format(self, node: ChaosNode, properties: dict[str, str], voters: str) -> None:
        storage = format_node(
            RealPorts(),
            FormatPlan(
                cluster_id=self.cluster_id,
                properties=properties,
                initial_controllers=voters if node.id in FIRST_VOTERS else None,
                no_initial_controllers=node.id not in FIRST_VOTERS,
            ),
        )
        self.directory_ids[node.id] = next(iter(storage.directory_ids.values()))

    @property
    def good_codes(self) -> set[int]:
        """How a node ends that was asked to: a JVM by the signal's own code."""
        return {0} if self.software == MILLSTREAM else {128 + signal.SIGTERM}

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.where.told for node in self.nodes.values())

    @property
    def askable(self) -> list[ChaosNode]:
        return [node for node in self.nodes.values() if node.runs and node.id not in self.away]

    def start(self) -> None:
        for node in self.nodes.values():
            node.launch()
        for node in self.nodes.values():
            node.until_ready()

    def stop(self) -> dict[int, int]:
        """SIGTERM to all at once, and the exit codes."""
        for node in self.nodes.values():
            if node.process is not None:
                node.process.send_signal(signal.SIGTERM)
        return {node.id: node.ended(90) for node in self.nodes.values() if node.process is not None}

    def kill(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def keep_data(self) -> None:
        """Copy what the nodes have written to where it outlives their disks."""
        for node in self.nodes.values():
            shutil.copytree(node.data, node.directory / "kept")

    def others(self, *nodes: int) -> list[int]:
        return [number for number in self.nodes if number not in nodes]

    def last_words(self, nodes: Iterable[int] | None = None, size: int = 1_500) -> str:
        """The ends of the logs, for a failure's text."""
        chosen = self.nodes if nodes is None else nodes
        return "\n".join(f"--- node {n}\n{self.nodes[n].log.read_text(errors='replace')[-size:]}" for n in chosen)
