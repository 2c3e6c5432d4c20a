"""One partition's leader and followers without disks, sockets or loops: the pure rules, dice, and perfect hindsight.

A simple controller (one mind, always right) elects, fences and agrees to changes of the ISR as Kafka's does; what it
decides reaches each replica in order but late. Fetches and their answers are late, doubled and lost. Replicas
(pure_replica.py) crash: a killed process keeps its log, a machine without power loses the end of it, once at a time and
only while everybody is in sync. The ledger of what was committed is compared with each log after every step.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import replace
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from millstream.testing.violations import Violation
from tests.sim.pure_replica import LAG_MAX_MS, Replica, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.replication.leader import IsrProposal, PartitionLeader


class ReplicationWorld:
    """Everything, driven by one seed."""

    def __init__(self, seed: int, *, replicas: int = 3, min_isr: int = 2) -> None:
        self.random = Random(f"replication {seed}")
        self.now_ms = 0
        self.min_isr = min_isr
        self.ids = tuple(range(1, replicas + 1))
        self.replicas = {broker_id: Replica(self, broker_id) for broker_id in self.ids}
        self.state = State(1, 0, self.ids, 0)
        self.unfenced: dict[int, int] = {}
        self.ledger: list[tuple[int, str]] = []
        self.acked: dict[int, str] = {}
        self.leaders: dict[int, int] = {}
        self.blocked: dict[tuple[int, int], None] = {}
        self.steps = 0
        self._at_peace = False
        self._values = count(1)
        self._broker_epochs = count(10)
        self._news: dict[int, deque[State]] = {broker_id: deque() for broker_id in self.ids}
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._marks: dict[tuple[int, int], int] = {}
        self._ends: dict[int, int] = {}

    # --- time and network

    def at(self, delay_ms: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_ms + delay_ms, next(self._order), call))

    def send(self, source: int, target: int, call: Callable[[], None]) -> None:
        if self._at_peace:
            self.at(self.random.randrange(1, 10), call)
            return
        if self.random.random() < 0.03:
            return
        for _ in range(2 if self.random.random() < 0.05 else 1):
            delay_ms = self.random.randrange(1, 10) if self.random.random() < 0.93 else self.random.randrange(900)
            self.at(delay_ms, lambda: call() if (source, target) not in self.blocked else None)

    def run(self, *, virtual_ms: int = 8_000) -> None:
        for replica in self.replicas.values():
            replica.broker_epoch = self.unfenced[replica.id] = next(self._broker_epochs)
        self._publish(self.state)
        self.at(20, self._produce)
        self.at(self.random.randrange(500), self._break)
        self.at(LAG_MAX_MS, self._drop_laggards)
        self._until(virtual_ms)
        self._at_peace = True
        self.blocked.clear()
        for replica in self.replicas.values():
            self._boot(replica)
        before = len(self.acked)
        self._until(self.now_ms + 8_000)
        if len(self.acked) <= before:
            raise Violation("it comes to rest", f"nothing is acknowledged after everything was mended: {self.state}")
        for replica in self.replicas.values():
            if replica.log.entries[: len(self.ledger)] != self.ledger[: replica.log.end_offset]:
                raise Violation("replicas are alike at rest", f"{replica.id}")
            if self.state.isr and replica.id not in self.state.isr:
                raise Violation("every replica catches up", f"{replica.id} is not in sync at the end")

    def _until(self, end_ms: int) -> None:
        while self._due and self._due[0][0] <= end_ms:
            self.now_ms, _, call = heapq.heappop(self._due)
            self.steps += 1
            call()
        self.now_ms = end_ms

    # --- the controller

    def _publish(self, state: State) -> None:
        self.state = state
        for replica in self.replicas.values():
            self._tell(replica, state)

    def _tell(self, replica: Replica, state: State) -> None:
        if not replica.up:
            return
        self._news[replica.id].append(state)
        slow = self.random.random() < 0.15
        replica.later(self.random.randrange(1, 700 if slow else 20), lambda: self._learn(replica))

    def _learn(self, replica: Replica) -> None:
        news = self._news[replica.id]
        if news:
            replica.learn(news.popleft())

    def _elect(self, isr: tuple[int, ...], *, avoid: int = -1) -> None:
        """A leader out of those in sync; without one, the last of them stay members until they are back."""
        alive = [member for member in isr if member in self.unfenced]
        alive = [member for member in alive if member != avoid] or alive
        state = self.state
        if alive:
            isr = tuple(member for member in isr if member in self.unfenced)
            leader = state.leader if state.leader in alive else self.random.choice(alive)
        else:
            leader = -1
        if (leader, isr) == (state.leader, state.isr):
            return
        bump = leader != state.leader or len(isr) < len(state.isr)
        self._publish(State(leader, state.leader_epoch + bump, isr, state.partition_epoch + 1))

    def fence(self, broker_id: int) -> None:
        if self.unfenced.pop(broker_id, None) is not None:
            rest = tuple(member for member in self.state.isr if member != broker_id)
            self._elect(rest or self.state.isr)

    def register(self, replica: Replica) -> None:
        self.fence(replica.id)
        replica.broker_epoch = next(self._broker_epochs)
        self.unfenced[replica.id] = replica.broker_epoch
        self._elect(self.state.isr)

    def alter(self, replica: Replica, leader: PartitionLeader, proposal: IsrProposal) -> None:
        """AlterPartition, with the checks of KIP-497 and KIP-903."""
        state = self.state
        if proposal.partition_epoch < state.partition_epoch or proposal.leader_epoch != state.leader_epoch:
            # Overtaken, perhaps by a copy of itself: the leader keeps both in mind until the metadata tell.
            self.send(0, replica.id, lambda: replica.refused(leader, proposal))
            return
        if any(self.unfenced.get(member) != epoch for member, epoch in proposal.isr):
            self.send(0, replica.id, lambda: replica._moved(leader.withdraw(proposal)))
            return
        self._publish(replace(state, isr=proposal.members, partition_epoch=state.partition_epoch + 1))

    # --- what happens to them

    def _produce(self) -> None:
        for replica in self.replicas.values():
            if replica.up and self.random.random() < 0.7:
                replica.produce(f"v{next(self._values)}")
        self.at(self.random.randrange(1, 40), self._produce)

    def _drop_laggards(self) -> None:
        for replica in self.replicas.values():
            if replica.up:
                replica.drop_laggards()
        self.at(LAG_MAX_MS // 2, self._drop_laggards)

    def _break(self) -> None:  # noqa: C901  # one branch for each kind of mishap
        if self._at_peace:
            return
        replica = self.random.choice(list(self.replicas.values()))
        dice = self.random.random()
        if dice < 0.35:
            self._kill(replica)
        elif dice < 0.5:
            for each in self.replicas.values():
                if self.random.random() < 0.7:
                    self._kill(each)
        elif dice < 0.7:
            for other in [*self.replicas, 0]:
                if self.random.random() < 0.7:
                    self.blocked[replica.id, other] = None
                if self.random.random() < 0.7:
                    self.blocked[other, replica.id] = None
            if self.random.random() < 0.6:
                self.at(self.random.randrange(600), lambda: self.fence(replica.id))
                self.at(900, lambda: self._unfence(replica))
        elif dice < 0.8 and self.state.leader >= 0:
            self._elect(self.state.isr, avoid=self.state.leader)
        else:
            self.blocked.clear()
        self.at(self.random.randrange(500), self._break)

    def _unfence(self, replica: Replica) -> None:
        if replica.up and replica.id not in self.unfenced:
            self.unfenced[replica.id] = replica.broker_epoch
            self._elect(self.state.isr)

    def _kill(self, replica: Replica) -> None:
        if not replica.up:
            return
        power = len(self.state.isr) == len(self.ids) and all(each.up for each in self.replicas.values())
        power = power and self.random.random() < 0.4
        replica.up = False
        replica.boots += 1
        replica.leader = replica.follower = None
        replica.waiting.clear()
        self._news[replica.id].clear()
        if power:
            self.fence(replica.id)
            replica.log.cut(self.random.randint(max(0, replica.log.end_offset - 6), replica.log.end_offset))
        elif self.random.random() < 0.7:
            self.at(self.random.randrange(300), lambda: self.fence(replica.id) if not replica.up else None)
        # The mark is read from a checkpoint, which may be old.
        replica.log.high_watermark = self.random.randint(0, replica.log.high_watermark)
        self.at(self.random.choice((5, 100, 1_200)), lambda: self._boot(replica))

    def _boot(self, replica: Replica) -> None:
        if not replica.up:
            replica.up = True
            self._news[replica.id].clear()
            self._marks[replica.id, replica.boots] = 0
            self.register(replica)
            self._tell(replica, self.state)
        elif replica.id not in self.unfenced:
            self._unfence(replica)

    # --- what must hold

    def elected(self, replica: Replica) -> None:
        leader = replica.leader
        assert leader is not None
        first = self.leaders.setdefault(leader.epoch, replica.id)
        if first != replica.id:
            raise Violation("an epoch has one leader", f"{first} and {replica.id} lead epoch {leader.epoch}")
        # Who hears late that it led need not know what later leaders have committed.
        before = max((end for epoch, end in self._ends.items() if epoch < leader.epoch), default=0)
        if replica.log.entries[:before] != self.ledger[:before]:
            raise Violation("a leader holds all that was committed", f"{replica.id} in epoch {leader.epoch}")

    def cut(self, replica: Replica, offset: int) -> None:
        if offset < replica.log.high_watermark:
            raise Violation("a log is not cut below its high watermark", f"{replica.id} at {offset}")

    def look(self, replica: Replica) -> None:
        log = replica.log
        mark = log.high_watermark
        key = (replica.id, replica.boots)
        if mark < self._marks.get(key, 0):
            raise Violation("high watermarks only grow", f"{replica.id}: {mark} after {self._marks[key]}")
        self._marks[key] = mark
        common = min(mark, len(self.ledger))
        if log.entries[:common] != self.ledger[:common]:
            raise Violation("what was committed stays", f"{replica.id} below {mark}")
        if mark > len(self.ledger):
            if replica.leader is None:
                raise Violation("a follower knows no higher mark than its leaders", f"{replica.id}: {mark}")
            self.ledger = log.entries[:mark]
            self._ends[replica.leader.epoch] = mark

    def acknowledged(self, replica: Replica, offset: int, value: str) -> None:
        self.acked[offset] = value
        entry = replica.log.entries[offset]
        holders = sum(
            each.log.end_offset > offset and each.log.entries[offset] == entry for each in self.replicas.values()
        )
        if holders < self.min_isr:
            raise Violation("min.insync.replicas hold what is acknowledged", f"{holders} hold {value}")


def run(seed: int, *, replicas: int = 3, min_isr: int = 2) -> ReplicationWorld:
    world = ReplicationWorld(seed, replicas=replicas, min_isr=min_isr)
    world.run()
    return world
