"""What a fault has to hand: the cluster, its links, clients at work, dice, and the timeline that is told afterwards."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.chaos.reading import PARTITIONS
from tests.chaos.workload import INPUT
from tests.cluster_chaos.links import CLIENTS, both_ways
from tests.cluster_chaos.views import Standing, is_whole, newest, quorum
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random

    from tests.chaos.workload import Workload
    from tests.cluster_chaos.links import Links
    from tests.cluster_chaos.processes import ChaosCluster, ChaosNode
    from tests.cluster_chaos.views import Place, Quorum

PLACES: list[Place] = [(INPUT, index) for index in range(PARTITIONS)]
NOTICED_S = 60.0
WHOLE_S = 120.0


@dataclass
class Scene:
    """Shared by all faults of a run."""

    cluster: ChaosCluster
    workload: Workload
    random: Random
    began_s: float = field(default_factory=time.monotonic)
    timeline: list[str] = field(default_factory=list)

    @property
    def links(self) -> Links:
        return self.cluster.links

    def say(self, what: str) -> None:
        line = f"{time.monotonic() - self.began_s:7.1f} s  {what}"
        self.timeline.append(line)
        print(line, flush=True)

    # --- who is who

    def a_leader(self, *, but: Iterable[int] = ()) -> tuple[Place, Standing, ChaosNode]:
        """A partition that clients write to, and the node that leads it."""

        def led() -> list[tuple[Place, Standing]]:
            seen = [(place, newest(self.cluster, place)) for place in PLACES]
            return [(place, each) for place, each in seen if each and each.leader > 0 and each.leader not in but]

        place, standing = self.random.choice(wait_until(led, "a partition with a leader", within_s=NOTICED_S))
        return place, standing, self.cluster.nodes[standing.leader]

    def leaders(self) -> set[int]:
        """Of all partitions that clients write to, once all have one."""

        def all_led() -> set[int] | None:
            seen = [newest(self.cluster, place) for place in PLACES]
            leaders = {each.leader if each is not None else -1 for each in seen}
            return leaders if min(leaders) > 0 else None

        return wait_until(all_led, "leaders of all partitions", within_s=NOTICED_S)

    def controller(self) -> Quorum:
        return wait_until(lambda: quorum(self.cluster), "an active controller", within_s=NOTICED_S, every_s=0.1)

    # --- breaking, and the proofs

    def take(self, *nodes: int) -> None:
        """Nobody asks these nodes for a while."""
        self.cluster.away.update(nodes)

    def bites(self, what: str, condition: Callable[[], object], *, within_s: float = NOTICED_S) -> None:
        """The proof that something is broken now."""
        began_s = time.monotonic()
        wait_until(condition, f"the proof that it bites: {what}", within_s=within_s, every_s=0.05)
        self.say(f"bites: {what} (after {time.monotonic() - began_s:.1f} s)")

    def cut(self, some: Iterable[int], others: Iterable[int]) -> None:
        """Both ways, and probes that do not pass."""
        some, others = list(some), list(others)
        both_ways(self.links, some, others)
        for one in some:
            for other in others:
                if one != other:
                    assert not self.links.passes(one, other), f"{one} still reaches {other}"
                    assert not self.links.passes(other, one), f"{other} still reaches {one}"
        self.say(f"bites: nothing passes between {_named(some)} and {_named(others)}")

    def another_leads(self, place: Place, before: Standing, *, out: Iterable[int] = ()) -> None:
        """By the others' account, in a newer epoch, and without those who are out."""
        gone = {before.leader, *out}

        def moved() -> Standing | None:
            now = newest(self.cluster, place)
            return now if now and now.epoch > before.epoch and now.leader > 0 and now.leader not in gone else None

        self.bites(f"{place[0]}-{place[1]} is no longer led by {before.leader}", moved)
        self.bites(
            f"{_named(gone)} is out of its ISR",
            lambda: (now := newest(self.cluster, place)) is not None and not gone & set(now.isr),
        )

    def works_on(
        self, *, places: Iterable[Place] = PLACES, acked: int = 10, copied: int = 0, within_s: float = 2 * NOTICED_S
    ) -> None:
        """Clients get on while it lasts: everything that is written is acknowledged.

        Copies are only asked for when all is well again. A TxnOffsetCommit of librdkafka 2.16 waits for the coordinator
        that it has heard of first, whoever coordinates by then (Apache Kafka's users wait as well).
        """
        wanted = {place: self.workload.acked_in[place] + acked for place in places}
        copies = self.workload.copied + copied
        try:
            wait_until(
                lambda: (
                    all(self.workload.acked_in[place] >= count for place, count in wanted.items())
                    and self.workload.copied >= copies
                ),
                "clients to get on",
                within_s=within_s,
                every_s=0.02,
            )
        except TimeoutError as error:
            written = {place: (self.workload.acked_in[place], count) for place, count in wanted.items()}
            copied = (self.workload.copied, copies)
            raise TimeoutError(f"{error}: written {written}, copied {copied}\n{self.workload.standing()}") from None
        self.say("clients work on")

    # --- mending

    def mend(self) -> None:
        """Links, stopped and dead processes; then everything has to be well again."""
        self.links.heal()
        for node in self.cluster.nodes.values():
            node.go_on()
            if node.process is not None and node.process.poll() is not None:
                node.process = None
            if node.process is None:
                node.launch()
        for node in self.cluster.nodes.values():
            node.until_ready()
        self.cluster.away.clear()
        self.whole()

    def whole(self) -> None:
        began_s = time.monotonic()
        try:
            wait_until(
                lambda: is_whole(self.cluster, self.cluster.nodes),
                "all nodes in service and all replicas in sync",
                within_s=WHOLE_S,
                every_s=0.1,
            )
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.cluster.last_words()}") from None
        self.say(f"whole again (after {time.monotonic() - began_s:.1f} s)")


def _named(nodes: Iterable[int]) -> str:
    return ", ".join("the clients" if node == CLIENTS else str(node) for node in nodes)
