"""Many quorum nodes without disks, sockets or loops: only the pure machine, a network of dice and perfect hindsight.

It runs a few hundred seeds per second, so it finds what needs an unlikely order of messages. Nodes (pure_voter.py)
crash and lose what was not flushed, links break, messages are late, doubled and lost. After every step the log of
commits is compared with what each node believes.
"""

from __future__ import annotations

import heapq
from itertools import count
from random import Random
from typing import TYPE_CHECKING

from millstream.quorum import events as happens
from millstream.quorum.election_state import NOBODY
from millstream.quorum.node import QuorumTimeouts
from millstream.quorum.roles import Leader
from millstream.quorum.voters import Voter, VoterSet
from millstream.testing.violations import Violation
from tests.sim.pure_voter import Member

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.quorum.node import QuorumNode
    from tests.sim.pure_voter import Message


class QuorumWorld:
    """Everything, driven by one seed."""

    def __init__(self, seed: int, *, voters: int = 3) -> None:
        self.random = Random(f"quorum {seed}")
        self.now_ms = 0
        # Short timeouts make candidates meet; with Kafka's own there is seldom more than one.
        self.timeouts = QuorumTimeouts(
            election_ms=self.random.choice((40, 200, 1_000)), fetch_ms=self.random.choice((300, 2_000))
        )
        self.delay_ms_max = self.random.choice((15, 15, 120, 400))
        self.voters = VoterSet(tuple(Voter(number) for number in range(1, voters + 1)))
        self.members = {number: Member(self, number) for number in self.voters.ids()}
        self.leaders: dict[int, int] = {}
        self.ledger: list[tuple[int, str]] = []
        self.blocked: dict[tuple[int, int], None] = {}
        self.appended = 0
        self._at_peace = False
        self.steps = 0
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        self._epochs: dict[int, int] = {}
        self._votes: dict[tuple[int, int], int] = {}
        self._marks: dict[tuple[int, int], int] = {}
        self._heard_ms: dict[tuple[int, int], int] = {}

    def at(self, delay_ms: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_ms + delay_ms, next(self._order), call))

    def send(self, message: Message) -> None:
        if self._at_peace:
            self.at(self.random.randrange(2, 10), lambda: self._arrives(message))
            return
        if self.random.random() < 0.03:
            return
        for _ in range(2 if self.random.random() < 0.05 else 1):
            late = self.random.random() < 0.05
            delay_ms = self.random.randrange(2_500) if late else self.random.randrange(2, self.delay_ms_max)
            self.at(delay_ms, lambda: self._arrives(message))

    def _arrives(self, message: Message) -> None:
        if (message.source, message.target) not in self.blocked:
            if isinstance(message.content, happens.FetchRequested):
                self._heard_ms[message.target, message.source] = self.now_ms
            self.members[message.target].receive(message)

    def run(self, *, virtual_ms: int = 20_000) -> None:
        """Chaos first, then peace, in which a leader has to be found and something committed."""
        for member in self.members.values():
            member.boot()
        self.at(100, self._append)
        self.at(self.random.randrange(2_000), self._break)
        self._until(virtual_ms)
        self.blocked.clear()
        self._at_peace = True
        for member in self.members.values():
            if member.machine is None:
                member.boot()
        before = len(self.ledger)
        self._until(self.now_ms + 10_000)
        if len(self.ledger) <= before:
            raise Violation("it comes to rest", "nothing is committed after everything was mended")

    def _until(self, end_ms: int) -> None:
        while self._due and self._due[0][0] <= end_ms:
            self.now_ms, _, call = heapq.heappop(self._due)
            self.steps += 1
            call()
        self.now_ms = end_ms

    # --- what happens to them

    def may_break(self, chance: float) -> bool:
        return not self._at_peace and self.random.random() < chance

    def crash_briefly(self, member: Member) -> Callable[[], None]:
        def crash() -> None:
            member.crash()
            self.at(self.random.randrange(10), lambda: member.boot() if member.machine is None else None)

        return crash

    def _append(self) -> None:
        for member in self.members.values():
            if member.machine is not None and member.machine.leads and self.random.random() < 0.5:
                self.appended += 1
                member.log.entries.append((member.machine.epoch, f"v{self.appended}"))
                member.flush()
        self.at(self.random.randrange(150), self._append)

    def _break(self) -> None:  # noqa: C901  # one branch for each kind of mishap
        if self._at_peace:
            return
        dice = self.random.random()
        if dice < 0.35:
            member = self.random.choice(list(self.members.values()))
            if member.machine is not None:
                member.crash()
                # Quickly back, or after others have gone on without it.
                pause_ms = self.random.choice((1, 30, 3_000))
                self.at(self.random.randrange(pause_ms), lambda: member.boot() if member.machine is None else None)
        elif dice < 0.5:
            for member in self.members.values():
                if member.machine is not None and self.random.random() < 0.7:
                    member.crash()
                    self.at(self.random.randrange(1_000), lambda it=member: it.boot() if it.machine is None else None)
        elif dice < 0.8:
            one = self.random.choice(list(self.members))
            for other in self.members:
                if other != one:
                    if self.random.random() < 0.8:
                        self.blocked[one, other] = None
                    if self.random.random() < 0.8:
                        self.blocked[other, one] = None
        else:
            self.blocked.clear()
        if self.random.random() < 0.3:
            self.blocked.clear()
        self.at(self.random.randrange(2_500), self._break)

    # --- what must hold

    def look(self, member: Member) -> None:
        machine = member.machine
        assert machine is not None
        if machine.epoch < self._epochs.get(member.id, 0):
            raise Violation("epochs only grow", f"{member.id}: {machine.epoch} after {self._epochs[member.id]}")
        self._epochs[member.id] = machine.epoch
        if machine.state.voted_id != NOBODY:
            first = self._votes.setdefault((member.id, machine.epoch), machine.state.voted_id)
            if first != machine.state.voted_id:
                raise Violation("one vote per epoch", f"{member.id}: {first} and {machine.state.voted_id}")
        key = (member.id, member.boots)
        if machine.high_watermark < self._marks.get(key, 0):
            raise Violation("high watermarks only grow", str(member.id))
        self._marks[key] = machine.high_watermark
        if machine.high_watermark > len(member.log.entries):
            raise Violation("a log is not cut below its high watermark", str(member.id))
        if isinstance(machine.role, Leader):
            self._check_listened_to(member, machine, machine.role)

    def _check_listened_to(self, member: Member, machine: QuorumNode, role: Leader) -> None:
        """KAFKA-15489: whoever hears of no majority for long stops leading."""
        heard = sorted(
            (
                self.now_ms if other == member.id else max(role.since_ms, self._heard_ms.get((member.id, other), 0))
                for other in self.members
            ),
            reverse=True,
        )
        silence_ms = self.now_ms - heard[self.voters.majority - 1]
        if silence_ms > 3 * machine.timeouts.check_quorum_ms:
            raise Violation("an isolated leader resigns", f"{member.id} leads after {silence_ms} ms of silence")

    def elected(self, member: Member, epoch: int) -> None:
        first = self.leaders.setdefault(epoch, member.id)
        if first != member.id:
            raise Violation("an epoch has one leader", f"{first} and {member.id} lead epoch {epoch}")
        if member.log.entries[: len(self.ledger)] != self.ledger:
            raise Violation("a leader holds all that was committed", f"{member.id} in epoch {epoch}")

    def committed(self, member: Member, mark: int) -> None:
        entries = member.log.entries[:mark]
        if len(entries) < mark:
            raise Violation("nobody commits what it has not", f"{member.id}: {mark} of {len(entries)}")
        common = min(mark, len(self.ledger))
        if entries[:common] != self.ledger[:common]:
            raise Violation("what was committed stays", f"{member.id} at {mark}")
        if mark > len(self.ledger):
            holders = sum(
                each.log.durable >= mark and each.log.entries[:mark] == entries for each in self.members.values()
            )
            if holders < len(self.members) // 2 + 1:
                raise Violation("a majority holds what is committed", f"{holders} hold {mark} entries")
            self.ledger = entries


def run(seed: int, *, voters: int = 3) -> QuorumWorld:
    world = QuorumWorld(seed, voters=voters)
    world.run()
    return world
