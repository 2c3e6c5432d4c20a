"""One run: a cluster, clients at work, one fault after the other, a final read, and the verdict.

It runs in a process of its own (`__main__`), since it lives in other namespaces than the test that asked for it.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos.reading import PARTITIONS
from tests.chaos.workload import Workload, judged, must_be_fed, until_compacted
from tests.cluster_chaos.faults import FAULTS
from tests.cluster_chaos.load import PROTOCOLS, Load, load_judged
from tests.cluster_chaos.processes import MILLSTREAM, NODES, ChaosCluster
from tests.cluster_chaos.scene import WHOLE_S, Scene
from tests.cluster_chaos.views import newest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from millstream.testing.history import History
    from tests.cluster_chaos.links import Links

REPLICAS = 3
# Clients that wait a minute for a node that was stopped would sleep through most of a run.
PATIENCE = {
    "socket.timeout.ms": 6_000,
    "topic.metadata.refresh.interval.ms": 1_000,
    "socket.connection.setup.timeout.ms": 2_000,
    # librdkafka 2.16 dials the coordinator of a TxnOffsetCommit once; where that was refused, as a broker that restarts
    # refuses, the call waits for ever, whatever its time-out. Connections that are kept up anyway are dialled again.
    "enable.sparse.connections": False,
}


def _light(bootstrap: str) -> Workload:
    """One writer, two copiers, and readers in groups of both protocols."""
    return Workload(bootstrap, options=PATIENCE, readers=PROTOCOLS)


def _light_judged(workload: Workload) -> History:
    until_compacted(workload.bootstrap)
    history = judged(workload)
    must_be_fed(history)
    return history


def _heavy(bootstrap: str) -> Load:
    """Eighteen producers and four copiers."""
    return Load(bootstrap, options=PATIENCE)


class Kind(NamedTuple):
    """Clients, what judges them in the end, and how many copies show that they get on."""

    make: Callable[[str], Any]
    judge: Callable[[Any], History]
    copies: int


LOADS = {"light": Kind(_light, _light_judged, 10), "heavy": Kind(_heavy, load_judged, 500)}


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do. The same seed draws the same faults and victims, as far as the cluster is in the same state then."""

    seed: int
    faults: Sequence[str] = tuple(FAULTS)
    minutes: float | None = None
    """Faults by the dice for as long as this; None for each of them once, in their order."""
    load: str = "light"
    """Which clients work: see LOADS."""
    nodes: tuple[int, ...] = NODES
    software: str = MILLSTREAM


@dataclass
class Report:
    """What was done and seen."""

    plan: Plan
    links: str
    faults: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    history: History | None = None
    copied: int = 0
    read: Counter[str] = field(default_factory=Counter)
    replicas_compared: int = 0

    def __str__(self) -> str:
        assert self.history is not None
        outcomes = Counter(sent.outcome.value for sent in self.history.sent)
        transactions = Counter(outcome.value for outcome in self.history.transactions.values())
        final = sum(len(records) for records in (self.history.final or {}).values())
        faults = ", ".join(f"{name} {count}" for name, count in self.faults.items())
        return (
            f"seed {self.plan.seed}: {sum(self.faults.values())} faults in {self.seconds:.0f} s on "
            f"{len(self.plan.nodes)} processes ({self.links}): {faults}; "
            f"{outcomes['ok']} of {len(self.history.sent)} records acknowledged, "
            f"{transactions['ok']} transactions committed and {transactions['failed']} aborted, {self.copied} records "
            f"copied, {sum(self.read.values())} read by {len(self.read)} readers, {final} in the final read; "
            f"{self.replicas_compared} logs of replicas compared; no anomaly"
        )


def run(plan: Plan, directory: Path, links: Links, *, keep: bool = False) -> Report:
    """Raises whatever cannot be. `keep` what the nodes had written then: their disks may be gone with the run."""
    report = Report(plan, links.name)
    began_s = time.monotonic()
    settings = {"log.cleaner.backoff.ms": "5000"}
    cluster = ChaosCluster(directory, links, plan.seed, plan.nodes, settings=settings, software=plan.software)
    kind = LOADS[plan.load]
    workload: Workload | None = None
    try:
        cluster.start()
        workload = kind.make(cluster.bootstrap_servers)
        create_topics(cluster, workload.topics)
        scene = Scene(cluster, workload, Random(f"{plan.seed} faults"), began_s)
        scene.say(f"{len(cluster.nodes)} nodes serve, voters {scene.controller().voters}; seed {plan.seed}")
        workload.start()
        scene.works_on(copied=kind.copies)
        for name in _drawn(plan, scene, began_s):
            scene.say(f"== {name}")
            FAULTS[name](scene)
            scene.mend()
            scene.works_on(copied=kind.copies, within_s=WHOLE_S)
            report.faults[name] += 1
        report.history = kind.judge(workload)
        report.read, report.copied = workload.read, workload.copied
        scene.say("the history is checked")
        report.replicas_compared = _stop_and_compare(cluster, workload.topics)
    except BaseException:
        if workload is not None:
            workload.give_up()
        print(cluster.last_words(), flush=True)
        if keep:
            cluster.kill()
            cluster.keep_data()
        raise
    finally:
        cluster.kill()
        links.close()
    report.seconds = time.monotonic() - began_s
    return report


def _drawn(plan: Plan, scene: Scene, began_s: float) -> Iterator[str]:
    if plan.minutes is None:
        yield from plan.faults
        return
    while time.monotonic() - began_s < plan.minutes * 60:
        yield scene.random.choice(list(plan.faults))


def create_topics(cluster: ChaosCluster, topics: Mapping[str, Mapping[str, str]]) -> None:
    """Replicas and leaders spread by hand: each of the first nodes leads a partition of each topic."""
    nodes = list(cluster.nodes)
    assignments = [[nodes[(index + step) % len(nodes)] for step in range(REPLICAS)] for index in range(PARTITIONS)]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
    wanted = [
        NewTopic(name, PARTITIONS, replica_assignment=assignments, config=dict(config))
        for name, config in topics.items()
    ]
    for future in admin.create_topics(wanted).values():
        future.result(60)


def _stop_and_compare(cluster: ChaosCluster, topics: Mapping[str, Mapping[str, str]]) -> int:
    """Stop all in order; then the replicas of each partition hold the same bytes. How many logs were compared.

    Replicas compact by themselves, each when it is due: the files of compacted topics differ.
    """
    kept = [topic for topic, config in topics.items() if config.get("cleanup.policy") != "compact"]
    places = [(topic, index) for topic in kept for index in range(PARTITIONS)]
    replicas = {place: seen.replicas for place in places if (seen := newest(cluster, place)) is not None}
    assert len(replicas) == len(places)
    codes = cluster.stop()
    assert set(codes.values()) <= cluster.good_codes, f"nodes ended with {codes}"
    compared = 0
    for (topic, index), nodes in replicas.items():
        logs = {node: _log_of(cluster.nodes[node].data / f"{topic}-{index}") for node in nodes}
        assert len(set(logs.values())) == 1, f"{topic}-{index} differs: { ({n: len(log) for n, log in logs.items()}) }"
        compared += len(logs)
    return compared


def _log_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
