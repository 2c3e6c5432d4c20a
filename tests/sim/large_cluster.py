"""Hundreds of brokers: three real controllers, brokers as light as they come, a rack that is lost, a controller too.

    python -m tests.sim.large_cluster                               300 brokers, 10,000 partitions: a few minutes
    python -m tests.sim.large_cluster --brokers 30 --partitions 600

Real are the controllers with all they do (quorum, metadata log on a simulated disk, sessions, placement, elections,
AlterPartition), the messages and their encoding. Brokers are `light_brokers.LightBroker`. Time is virtual, so waiting
costs nothing and work takes no time: how long a phase takes is told in virtual seconds (what protocol and time-outs
cost), and in seconds of processor that the active controller needed (what the code costs), which is the limit.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import time
from collections import defaultdict, deque
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from millstream.broker.peers import Peers
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from millstream.testing.cluster import CONTROLLER_PORT, SimulatedCluster
from millstream.testing.loop import Process, current_process
from millstream.testing.quorum_invariants import QuorumInvariants
from millstream.testing.violations import TookTooLong
from tests.sim.light_brokers import LightBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.metadata.image import MetadataImage, PartitionImage
    from millstream.testing.simulated_node import SimulatedNode

RACKS = ("a", "b", "c")
REPLICAS = 3
TOPIC_PARTITIONS = 100
WAIT_S = 300.0
# The log stays whole: a light broker reads no snapshots.
SETTINGS = {
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.log.max.record.bytes.between.snapshots": str(1 << 30),
    "auto.leader.rebalance.enable": "false",
}


@dataclass
class Phase:
    """What one part of the run took."""

    name: str
    virtual_s: float
    controller_cpu_s: float
    elections: int
    lag_s: float
    """The longest time between a commit and the moment when the last broker in service had it."""
    lag_records: int
    """The most that any broker in service was behind the active controller at any time."""

    @property
    def elections_per_s(self) -> float:
        return self.elections / self.controller_cpu_s if self.controller_cpu_s else 0.0

    def row(self) -> str:
        return (
            f"| {self.name} | {self.virtual_s:.1f} s | {self.elections:,} | {self.controller_cpu_s:.2f} s "
            f"| {self.elections_per_s:,.0f} | {self.lag_s * 1000:.0f} ms | {self.lag_records:,} |"
        )


HEAD = (
    "| phase | virtual time | elections | processor time of the active controller | elections per second of it "
    "| metadata lag | at most behind, records |\n|---|---|---|---|---|---|---|"
)


@dataclass
class Outcome:
    """All phases, and what the process came to."""

    brokers: int
    partitions: int
    phases: list[Phase] = field(default_factory=list)
    fenced_by_mistake: int = 0
    memory_mb: float = 0.0
    memory_per_partition_b: float = 0.0

    def __str__(self) -> str:
        head = f"{self.brokers} brokers in {len(RACKS)} racks, {self.partitions:,} partitions, {REPLICAS} replicas each"
        foot = (
            f"{self.memory_mb:.0f} MB for everything at its peak, {self.memory_per_partition_b:.0f} bytes for each "
            f"partition on each controller; {self.fenced_by_mistake} brokers were fenced by mistake"
        )
        return "\n".join([head, HEAD, *(phase.row() for phase in self.phases), foot])


class Controllers(SimulatedCluster):
    """Nodes that are controllers only."""

    def _settings_of(self, number: int, voters: str, settings: Mapping[str, str]) -> dict[str, str]:
        made = super()._settings_of(number, voters, settings)
        return {**made, "process.roles": "controller", "listeners": made["listeners"].split(",")[1]}


@contextmanager
def counting_cpu() -> Iterator[dict[Process | None, float]]:
    """Seconds of processor time by simulated program, while the block runs."""
    spent: dict[Process | None, float] = defaultdict(float)
    right = asyncio.Handle._run

    def timed(handle: Any) -> None:
        owner = handle._context.run(current_process)
        began_s = time.thread_time()
        right(handle)
        spent[owner] += time.thread_time() - began_s

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield spent
    finally:
        asyncio.Handle._run = right  # type: ignore[method-assign]


class Large:
    """The scenario."""

    def __init__(self, brokers: int, partitions: int, seed: int) -> None:
        self.cluster = Controllers(seed, nodes=3, settings=SETTINGS)
        self.cluster.checkers.append(QuorumInvariants().look)
        self.outcome = Outcome(brokers, partitions)
        self.brokers = {
            number: LightBroker(self.cluster, number, RACKS[number % len(RACKS)], self.image)
            for number in range(101, 101 + brokers)
        }
        self._commits: deque[tuple[float, int]] = deque()
        self._lag_records = 0
        self._lag_s = 0.0

    def run(self) -> Outcome:
        with counting_cpu() as self.spent:
            self.cluster.run(self._scenario)
        self.outcome.memory_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return self.outcome

    async def _scenario(self, cluster: SimulatedCluster) -> None:
        await cluster.start()
        watching = asyncio.create_task(self._watch())
        for broker in self.brokers.values():
            broker.boot()
        await self._phase("all brokers register", lambda: None, self._all_in_service)
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        creating = await self._phase("all topics are created", self._create_topics, self._all_led)
        grown_b = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb) * 1024
        self.outcome.memory_per_partition_b = grown_b / len(cluster.nodes) / self.outcome.partitions
        assert creating.elections == 0
        self._spread_over_racks()
        await self._phase("a rack loses its power", lambda: self._lose_rack("a"), self._all_led)
        await self._phase("the rack comes back", lambda: self._bring_back("a"), self._all_in_sync)
        await self._phase("the active controller loses its power", self._lose_controller, self._all_in_service)
        await self._phase("it comes back", self._boot_controllers, self._all_in_sync)
        await self._phase("a rack and the active controller", lambda: self._lose_both("b"), self._all_led)
        self._boot_controllers()
        await self._phase("both come back", lambda: self._bring_back("b"), self._all_in_sync)
        self.outcome.fenced_by_mistake = sum(broker.fencings for broker in self.brokers.values())
        watching.cancel()

    # --- the state

    def active(self) -> SimulatedNode | None:
        leading = [at for at in self.cluster.serving if at.node is not None and at.node.controller.is_active]
        return max(leading, key=lambda at: at.node.controller.log.epoch if at.node else -1, default=None)

    def image(self) -> MetadataImage | None:
        at = self.active()
        return None if at is None or at.node is None else at.node.controller.image

    def _partitions(self) -> list[PartitionImage]:
        image = self.image()
        topics = () if image is None else image.topics.by_name.values()
        return [partition for topic in topics for partition in topic.partitions.values()]

    def _all_in_service(self) -> bool:
        image = self.image()
        return image is not None and all(
            broker.id in image.brokers and image.brokers[broker.id].active for broker in self._up()
        )

    def _all_led(self) -> bool:
        up = {broker.id for broker in self._up()}
        found = self._partitions()
        return len(found) == self.outcome.partitions and all(
            partition.leader in up and partition.leader in partition.isr and up.issuperset(partition.isr)
            for partition in found
        )

    def _all_in_sync(self) -> bool:
        return (
            self._all_in_service()
            and self._all_led()
            and all(sorted(partition.isr) == sorted(partition.replicas) for partition in self._partitions())
        )

    def _standing(self) -> str:
        """What may be missing, for whoever has to find out."""
        image = self.image()
        if image is None:
            return "there is no active controller"
        up = {broker.id for broker in self._up()}
        fenced = [number for number, broker in image.brokers.items() if broker.fenced]
        odd = [partition for partition in self._partitions() if not up.issuperset((partition.leader, *partition.isr))]
        return f"{len(up)} are up, fenced are {fenced}, {len(odd)} partitions wait, as {odd[:2]}"

    def _up(self) -> list[LightBroker]:
        return [broker for broker in self.brokers.values() if broker.is_up]

    def _spread_over_racks(self) -> None:
        for partition in self._partitions():
            assert len({self.brokers[replica].rack for replica in partition.replicas}) == REPLICAS, partition

    # --- what happens

    async def _create_topics(self) -> None:
        peers = Peers(self.cluster.network.at("creator"), "creator")
        count = self.outcome.partitions // TOPIC_PARTITIONS
        for number in range(count):
            topic = CreatableTopic(
                name=f"topic-{number}",
                num_partitions=TOPIC_PARTITIONS,
                replication_factor=REPLICAS,
                assignments=[],
                configs=[],
            )
            at = self.active()
            assert at is not None
            request = CreateTopicsRequest(topics=[topic], timeout_ms=60_000)
            answer = await peers.at(at.host, CONTROLLER_PORT).ask(request, timeout_ms=60_000)
            assert answer.topics[0].error_code == ErrorCode.NONE, answer
        peers.close()

    def _lose_rack(self, rack: str) -> None:
        for broker in self.brokers.values():
            if broker.rack == rack:
                broker.lose_power()

    def _bring_back(self, rack: str) -> None:
        for broker in self.brokers.values():
            if broker.rack == rack:
                broker.boot()

    def _lose_controller(self) -> None:
        at = self.active()
        assert at is not None
        at.kill(power=True)

    def _boot_controllers(self) -> None:
        for node in self.cluster.nodes.values():
            node.boot()

    def _lose_both(self, rack: str) -> None:
        self._lose_rack(rack)
        self._lose_controller()

    # --- measuring

    async def _phase(self, name: str, begin: Callable[[], Any], is_over: Callable[[], bool]) -> Phase:
        loop = self.cluster.loop
        epochs = [partition.leader_epoch for partition in self._partitions()]
        spent_before = dict(self.spent)
        self._lag_records, self._lag_s = 0, 0.0
        began_s = loop.time()
        beginning = begin()
        if beginning is not None:
            await beginning
        try:
            await self.cluster.until(is_over, within_s=WAIT_S, what=name)
        except TookTooLong as late:
            raise TookTooLong(f"{late}: {self._standing()}") from None
        decided_s = loop.time()
        image, at = self.image(), self.active()
        assert image is not None
        assert at is not None
        await self.cluster.until(
            lambda: all(broker.high_watermark >= image.offset for broker in self._up()),
            within_s=WAIT_S,
            what=f"all brokers know: {name}",
            every_s=0.005,
        )
        after = [partition.leader_epoch for partition in self._partitions()]
        phase = Phase(
            name,
            virtual_s=decided_s - began_s,
            controller_cpu_s=self.spent[at.process] - spent_before.get(at.process, 0.0),
            elections=sum(now > before for now, before in zip(after, epochs, strict=False)),
            lag_s=self._lag_s,
            lag_records=self._lag_records,
        )
        self.outcome.phases.append(phase)
        print(phase.row(), flush=True)
        return phase

    async def _watch(self) -> None:
        """How far the slowest broker is behind, all the time."""
        while True:
            image, now_s = self.image(), self.cluster.loop.time()
            known = min((broker.high_watermark - 1 for broker in self._up() if not broker.is_fenced), default=-1)
            if image is not None and known >= 0:
                if not self._commits or self._commits[-1][1] < image.offset:
                    self._commits.append((now_s, image.offset))
                while self._commits and self._commits[0][1] <= known:
                    self._commits.popleft()
                if self._commits:
                    self._lag_s = max(self._lag_s, now_s - self._commits[0][0])
                self._lag_records = max(self._lag_records, image.offset - known)
            await asyncio.sleep(0.005)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.large_cluster", description=__doc__)
    parser.add_argument("--brokers", type=int, default=300)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    began_s = time.monotonic()
    outcome = Large(options.brokers, options.partitions, options.seed).run()
    print(outcome)
    print(f"seed {options.seed}, {time.monotonic() - began_s:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
