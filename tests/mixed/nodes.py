"""Nodes of both kinds in one cluster, with a recorder before every listener."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.apache_kafka import ApacheKafka
from tests.support.millstream_process import MillstreamProcess
from tests.support.ports import answers_api_versions, free_ports
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.mixed.recorder import Recorder

CLUSTER_ID = "bWlsbHN0cmVhbS10ZXN0cw"
MILLSTREAM = "millstream"
KAFKA = "kafka"
LISTENERS = {"broker": "PLAINTEXT", "controller": "CONTROLLER"}
SETTINGS = {
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "PLAINTEXT",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
}


@dataclass(frozen=True)
class Place:
    """A node as the cluster is laid out: what kind, with which roles."""

    id: int
    kind: str
    roles: str

    @property
    def name(self) -> str:
        return f"{self.kind} {self.id}"


class MillstreamNode(MillstreamProcess):
    """A process that is told everything by its properties file, as Apache Kafka is."""

    def __init__(self, directory: Path, properties: Mapping[str, str]) -> None:
        super().__init__(directory)
        self.properties_path = directory / "server.properties"
        self.properties = {"log.dirs": str(self.data_directory), **properties}

    @property
    def command(self) -> list[str]:
        self.properties_path.write_text("".join(f"{name}={value}\n" for name, value in self.properties.items()))
        told = ("broker", str(self.properties_path), "--cluster-id", CLUSTER_ID)
        return [sys.executable, "-m", "millstream.cli.main", *told]


class MixedCluster:
    """The nodes by id, made but not started; the controllers among them are fixed voters."""

    def __init__(
        self,
        directory: Path,
        recorder: Recorder,
        places: Iterable[Place],
        settings: Mapping[str, str] | None = None,
        of_nodes: Mapping[int, Mapping[str, str]] | None = None,
    ) -> None:
        self.recorder = recorder
        self.places = {place.id: place for place in places}
        self.nodes: dict[int, ApacheKafka | MillstreamNode] = {}
        self._listeners = {
            place.id: {role: self._listener(place, role) for role in place.roles.split(",")}
            for place in self.places.values()
        }
        for place in self.places.values():
            properties = self._properties(place) | dict(settings or {}) | dict((of_nodes or {}).get(place.id, {}))
            node = self.nodes[place.id] = _node(place, directory / f"node-{place.id}", properties)
            recorder.pids[place.name] = partial(_pid, node)

    def _listener(self, place: Place, role: str) -> tuple[str, str]:
        bound = f"127.0.0.1:{free_ports(1)[0]}"
        return bound, self.recorder.tap(f"{place.name} {role}", bound)

    def _properties(self, place: Place) -> dict[str, str]:
        own = [(LISTENERS[role], addresses) for role, addresses in self._listeners[place.id].items()]
        return {
            **SETTINGS,
            "node.id": str(place.id),
            "process.roles": place.roles,
            "controller.quorum.voters": ",".join(
                f"{node}@{roles['controller'][1]}" for node, roles in self._listeners.items() if "controller" in roles
            ),
            "listeners": ",".join(f"{name}://{bound}" for name, (bound, _) in own),
            "advertised.listeners": ",".join(f"{name}://{told}" for name, (_, told) in own),
        }

    @property
    def bootstrap_servers(self) -> str:
        """The brokers, past the recorder: what clients say is not of interest."""
        return ",".join(roles["broker"][0] for roles in self._listeners.values() if "broker" in roles)

    def log_directories(self, node: int) -> list[Path]:
        return [Path(place) for place in self.nodes[node].properties["log.dirs"].split(",")]

    def start_in_turn(self) -> None:
        """Controllers first; a majority of them needs each other."""
        controllers = [place.id for place in self.places.values() if "controller" in place.roles]
        self.start(*controllers)
        others = [number for number in self.nodes if number not in controllers]
        if others:
            self.start(*others)

    def start(self, *ids: int) -> None:
        """Format where that is a step of its own, start all of these, and wait until they serve."""
        for number in ids or self.nodes:
            node = self.nodes[number]
            if isinstance(node, ApacheKafka) and not self._is_formatted(number):
                node.format()
            node.launch()
        for number in ids or self.nodes:
            node = self.nodes[number]
            if isinstance(node, ApacheKafka):
                wait_until(partial(_answers, self._listeners[number]), f"node {number} to answer", within_s=180)
            else:
                node.until_ready(within_s=180)

    def _is_formatted(self, number: int) -> bool:
        return any((place / "meta.properties").exists() for place in self.log_directories(number))

    def stop(self) -> None:
        """SIGTERM, brokers before the controller that they want to tell of it."""
        for number in sorted(self.nodes, reverse=True):
            self.nodes[number].stop()

    def kill(self) -> None:
        for node in self.nodes.values():
            node.kill()

    def last_words(self) -> str:
        return "\n".join(f"--- {self.places[number].name}\n{node.log_tail()}" for number, node in self.nodes.items())


def two_kinds(controller: str, directory: Path, recorder: Recorder) -> MixedCluster:
    """Node 1, of the kind given, is controller and broker; node 2, of the other kind, a broker with two directories.

    Snapshots are taken every few records, so that a broker without a disk meets one.
    """
    other = KAFKA if controller == MILLSTREAM else MILLSTREAM
    places = [directory / "node-2" / name for name in ("data", "more")]
    for each in places:
        each.mkdir(parents=True)
    return MixedCluster(
        directory,
        recorder,
        [Place(1, controller, "broker,controller"), Place(2, other, "broker")],
        {"metadata.log.max.record.bytes.between.snapshots": "3000", "metadata.max.retention.bytes": "4096"},
        {2: {"log.dirs": ",".join(map(str, places))}},
    )


def _node(place: Place, directory: Path, properties: dict[str, str]) -> ApacheKafka | MillstreamNode:
    if place.kind == MILLSTREAM:
        return MillstreamNode(directory, properties)
    return ApacheKafka(directory, node_id=place.id, cluster_id=CLUSTER_ID, properties=properties)


def _answers(roles: Mapping[str, tuple[str, str]]) -> bool:
    return all(answers_api_versions("127.0.0.1", int(bound.rpartition(":")[2])) for bound, _ in roles.values())


def _pid(node: ApacheKafka | MillstreamNode) -> int | None:
    process = node._process
    return None if process is None else process.pid
