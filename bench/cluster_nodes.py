"""The two clusters, set up alike: three nodes in combined roles, fixed voters, three replicas of which two must hold.

Everything else is at its defaults, sessions and timeouts too: what a contender chose is what is measured. A node of
Apache Kafka has half of the heap that its single one has, since three of them share the machine with the load.
"""

from __future__ import annotations

import itertools
import os
import signal
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from tests.support.apache_kafka import PRODUCTION, ApacheKafka
from tests.support.millstream_process import MillstreamProcess
from tests.support.ports import answers_api_versions, free_ports
from tests.support.raw import RawClient
from tests.support.running import memory_kb
from tests.support.waiting import wait_until

from bench.contenders import MILLSTREAM
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from millstream.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.support.running import RunningBroker

    from bench.session import Session

NODE_IDS = (1, 2, 3)
HEAP = "512m"
CLUSTER_ID = "bWlsbHN0cmVhbS1iZW5jaA"
# Replication as for any data of value; for coordinators too, which the tests' support gives one replica.
REPLICATION = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "group.initial.rebalance.delay.ms": "0",
}
METADATA_VERSION = 9
_topic_numbers = itertools.count(1)


class ThreeNodes:
    """A cluster of processes."""

    def __init__(self, nodes: dict[int, RunningBroker], ports: dict[int, int]) -> None:
        self.nodes = nodes
        self.ports = ports
        self.bootstrap_servers = ",".join(f"127.0.0.1:{port}" for port in ports.values())
        # Those that were killed or stopped, and must not be asked.
        self.away: set[int] = set()

    # --- up and down

    def start(self) -> None:
        for node_id in self.nodes:
            self.launch(node_id)
        for node_id in self.nodes:
            self.until_ready(node_id)
        wait_until(self._all_know_all, "three brokers that know each other", within_s=120, every_s=0.05)

    def launch(self, node_id: int) -> None:
        self.nodes[node_id].launch()

    def until_ready(self, node_id: int) -> None:
        """Until clients are served there."""
        node = self.nodes[node_id]
        if isinstance(node, MillstreamProcess):
            node.until_ready(within_s=120)
        else:
            port = self.ports[node_id]
            wait_until(lambda: answers_api_versions("127.0.0.1", port), f"node {node_id}", within_s=120, every_s=0.05)
        self.away.discard(node_id)

    def stop(self) -> None:
        for node in self.nodes.values():
            node.kill()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Warm, and without a claim to a processor: nodes that idle still wake up some hundred times a second."""
        for node in self.nodes.values():
            os.kill(node.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for node in self.nodes.values():
                os.kill(node.pid, signal.SIGCONT)
        # All of them have missed each other, so they elect, and come back, as after any failure.
        wait_until(self._makes_topics, "a cluster that works again", within_s=180, every_s=0.5)

    def _makes_topics(self) -> bool:
        try:
            with self.topic(partitions=3):
                return True
        except (OSError, AssertionError):
            return False

    def _all_know_all(self) -> bool:
        try:
            return all(
                len(self.ask(MetadataRequest(topics=[]), METADATA_VERSION, of=each).brokers) == 3 for each in NODE_IDS
            )
        except OSError:
            return False

    def memory_mb(self) -> float:
        """Resident, of all three."""
        return sum(memory_kb(node.pid) for node in self.nodes.values()) / 1024

    # --- asking

    def ask(self, request: Any, version: int, *, of: int | None = None, timeout_s: float = 60) -> Any:
        """One question on a connection of its own, to a node that lives."""
        node_id = next(each for each in NODE_IDS if each not in self.away) if of is None else of
        with RawClient("127.0.0.1", self.ports[node_id], timeout_s=timeout_s) as client:
            return client.call(request, version)

    def partitions(self, topic: str, *, of: int | None = None) -> dict[int, Any]:
        """The topic's partitions, as a node that lives knows them."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        (answer,) = self.ask(request, METADATA_VERSION, of=of).topics
        return {each.partition_index: each for each in answer.partitions}

    def leader(self, topic: str) -> int:
        """Who leads the first partition."""
        leader: int = self.partitions(topic)[0].leader_id
        return leader

    def active_controller(self) -> int:
        """Who leads the metadata quorum."""
        wanted = [TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
        answer = self.ask(DescribeQuorumRequest(topics=wanted), 0)
        leader: int = answer.topics[0].partitions[0].leader_id if answer.error_code == ErrorCode.NONE else -1
        return leader

    def until_in_sync(self, topic: str) -> None:
        """Until all three hold everything, and the same is known everywhere: who was away may not know who leads."""

        def in_sync() -> bool:
            try:
                views = [self.partitions(topic, of=node_id) for node_id in NODE_IDS]
                known = self._all_know_all()
            except OSError:
                return False
            leaders = [{index: (each.leader_id, each.leader_epoch) for index, each in view.items()} for view in views]
            in_sync = all(len(each.isr_nodes) == 3 for view in views for each in view.values())
            return known and in_sync and all(leaders) and leaders[0] == leaders[1] == leaders[2]

        wait_until(in_sync, f"three replicas of {topic} in sync", within_s=180, every_s=0.05)

    # --- topics

    def create(self, names: Sequence[str], partitions: int, replicas: int = 3) -> None:
        """All of them with one request."""
        wanted = [
            CreatableTopic(
                name=name, num_partitions=partitions, replication_factor=replicas, assignments=[], configs=[]
            )
            for name in names
        ]
        answer = self.ask(CreateTopicsRequest(topics=wanted, timeout_ms=120_000), 5, timeout_s=180)
        refused = [each for each in answer.topics if each.error_code != ErrorCode.NONE]
        assert not refused, refused[:3]

    def until_served(self, names: Sequence[str], partitions: int) -> None:
        """Until the leader of every partition answers for it: metadata may name leaders that don't know of it yet."""
        # Not too often: to be asked about a thousand topics is work, too.
        wait_until(
            lambda: self._are_served(names, partitions), f"leaders of {len(names)} topics", within_s=300, every_s=0.1
        )

    def _are_served(self, names: Sequence[str], partitions: int) -> bool:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        led: dict[int, dict[str, list[int]]] = {}
        for topic in self.ask(request, METADATA_VERSION).topics:
            if len(topic.partitions) < partitions:
                return False
            for each in topic.partitions:
                led.setdefault(each.leader_id, {}).setdefault(topic.name, []).append(each.partition_index)
        return all(leader in self.nodes and self._serves(leader, topics) for leader, topics in led.items())

    def _serves(self, leader: int, topics: dict[str, list[int]]) -> bool:
        wanted = [
            ListOffsetsTopic(
                name=name, partitions=[ListOffsetsPartition(partition_index=index, timestamp=-1) for index in indexes]
            )
            for name, indexes in topics.items()
        ]
        answer = self.ask(ListOffsetsRequest(replica_id=-1, topics=wanted), 4, of=leader)
        return all(each.error_code == ErrorCode.NONE for topic in answer.topics for each in topic.partitions)

    def delete(self, names: Sequence[str]) -> None:
        wanted = [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in names]
        self.ask(DeleteTopicsRequest(topics=wanted, timeout_ms=120_000), 6, timeout_s=180)

    @contextmanager
    def topic(self, partitions: int) -> Iterator[str]:
        """A topic of a row's own, in sync, deleted afterwards."""
        name = f"cluster-{next(_topic_numbers)}"
        self.create([name], partitions)
        self.until_served([name], partitions)
        self.until_in_sync(name)
        yield name
        self.delete([name])


def shared(session: Session, name: str) -> ThreeNodes:
    """The contender's cluster, started when a row first needs it and kept warm until the end."""
    return session.shared(f"three-{name}", lambda: _started(name, session.folder(f"three-{name}-")))


@contextmanager
def alone(session: Session, name: str) -> Iterator[ThreeNodes]:
    """The contender's cluster with the processors to itself."""
    cluster = shared(session, name)
    with ExitStack() as others:
        for each in session.shared_already(ThreeNodes):
            if each is not cluster:
                others.enter_context(each.frozen())
        yield cluster


def _started(name: str, directory: Path) -> ThreeNodes:
    cluster = _make(name, directory)
    try:
        cluster.start()
    except BaseException:
        cluster.stop()
        raise
    return cluster


def _make(name: str, directory: Path) -> ThreeNodes:
    found = free_ports(2 * len(NODE_IDS))
    ports = dict(zip(NODE_IDS, found, strict=False))
    controllers = dict(zip(NODE_IDS, found[len(NODE_IDS) :], strict=True))
    settings = REPLICATION | {
        "process.roles": "broker,controller",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": ",".join(f"{each}@127.0.0.1:{port}" for each, port in controllers.items()),
    }
    make = _millstream if name == MILLSTREAM else _apache_kafka
    nodes = {
        each: make(directory / f"node-{each}", each, ports[each], controllers[each], settings) for each in NODE_IDS
    }
    return ThreeNodes(nodes, ports)


def _millstream(directory: Path, node_id: int, port: int, controller: int, settings: dict[str, str]) -> RunningBroker:
    own = {"node.id": str(node_id), "listeners": f"CONTROLLER://127.0.0.1:{controller}"}
    return MillstreamProcess(
        directory, settings=settings | own, arguments=("--cluster-id", CLUSTER_ID), listen=f"127.0.0.1:{port}"
    )


def _apache_kafka(directory: Path, node_id: int, port: int, controller: int, settings: dict[str, str]) -> RunningBroker:
    own = {
        "listeners": f"BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "offsets.topic.num.partitions": "50",
        "transaction.state.log.num.partitions": "50",
    }
    kafka = ApacheKafka(
        directory,
        node_id=node_id,
        cluster_id=CLUSTER_ID,
        heap=HEAP,
        jvm_options=PRODUCTION,
        properties=settings | own,
    )
    kafka.format()
    return kafka
