"""Many quorum nodes without disks, sockets or loops: only the pure machine, a network of dice and perfect hindsight.

It runs a few hundred seeds per second, so it finds what needs an unlikely order of messages. Nodes crash and lose what
was not flushed, links break, messages are late, doubled and lost. After every step the log of commits is compared with
what each node believes.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum import events as happens
from millstream.quorum.election_state import NOBODY, ElectionState, decode_election_state, encode_election_state
from millstream.quorum.node import BrokenQuorum, QuorumNode, QuorumTimeouts
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import Leader, ReplicaKey
from millstream.quorum.voters import Voter, VoterSet
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

FLUSH_MS_MAX = (5, 20, 300)
FETCH_AGAIN_MS = 600


class PureLog:
    """(epoch, value) by offset; what is behind `durable` is lost in a crash."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, str]] = []
        self.durable = 0

    start_offset = 0
    latest_snapshot = None
    earliest_snapshot = None

    @property
    def end(self) -> LogPosition:
        return LogPosition(len(self.entries), self.entries[-1][0] if self.entries else 0)

    def end_of_epoch(self, epoch: int) -> LogPosition:
        for offset in range(len(self.entries), 0, -1):
            if self.entries[offset - 1][0] <= epoch:
                return LogPosition(offset, self.entries[offset - 1][0])
        return LogPosition(0, 0)

    def cut(self, offset: int) -> None:
        del self.entries[offset:]
        self.durable = min(self.durable, offset)


@dataclass(frozen=True, slots=True)
class _Message:
    source: int
    target: int
    kind: str
    content: Any
    asked: Any = None


class Member:
    """One node of the world: its disk, and its machine while it is up."""

    def __init__(self, world: QuorumWorld, node_id: int) -> None:
        self.world = world
        self.id = node_id
        self.log = PureLog()
        self.file = b""
        self.boots = 0
        self.machine: QuorumNode | None = None
        self.following: tuple[int, int] | None = None
        self._asked = 0
        self._wakes = 0
        self._flush_ms_max = world.random.choice(FLUSH_MS_MAX)

    def boot(self) -> None:
        self.boots += 1
        self.following = None
        state = decode_election_state(self.file) if self.file else ElectionState()
        self.machine = QuorumNode(
            node_id=self.id,
            directory_id=ZERO_UUID,
            voters=self.world.voters,
            kraft_version=0,
            state=state,
            log=self.log,
            jitter_ms=self.world.random.randrange,
            timeouts=self.world.timeouts,
        )
        self.step(happens.Started())

    def crash(self) -> None:
        self.machine = None
        kept = self.world.random.randint(self.log.durable, len(self.log.entries))
        self.log.cut(kept)
        self.log.durable = kept

    def step(self, event: happens.Event, sender: int = NOBODY) -> None:
        machine = self.machine
        if machine is None:
            return
        try:
            effects = machine.step(event, self.world.now_ms)
        except BrokenQuorum as error:
            raise Violation("the machine finds itself in order", str(error)) from error
        for effect in effects:
            self._carry_out(effect, event, sender)
        self.world.look(self)

    def later(self, delay_ms: int, call: Callable[[], None]) -> None:
        boot = self.boots
        self.world.at(delay_ms, lambda: call() if self.boots == boot and self.machine is not None else None)

    def _carry_out(  # noqa: C901  # one branch for each effect
        self, effect: happens.Effect, event: happens.Event, sender: int
    ) -> None:
        machine = self.machine
        assert machine is not None
        match effect:
            case happens.Persist(state):
                self.file = encode_election_state(state, kraft_version=0, voter_ids=self.world.voters.ids())
            case happens.Wake(at_ms):
                self._wakes += 1
                number = self._wakes
                self.later(max(0, at_ms - self.world.now_ms), lambda: self._wake(number))
            case happens.RequestVotes(epoch, voters, end, pre_vote):
                for voter in voters:
                    asked = happens.VoteRequested(ReplicaKey(self.id, ZERO_UUID), epoch, end, pre_vote)
                    self.world.send(_Message(self.id, voter.id, "request", asked))
            case happens.Lead(epoch):
                self.log.entries.append((epoch, f"leader {self.id}"))
                self.world.elected(self, epoch)
                self.flush()
            case happens.Announce(epoch, voters):
                for voter in voters:
                    self.world.send(_Message(self.id, voter.id, "request", happens.LeaderAnnounced(self.id, epoch)))
            case happens.Retire(epoch, voters):
                order = tuple(voter.id for voter in voters)
                for voter in voters:
                    self.world.send(
                        _Message(self.id, voter.id, "request", happens.LeaderRetired(self.id, epoch, order))
                    )
            case happens.Follow(epoch, leader_id):
                self.following = (epoch, leader_id)
                self.fetch()
            case happens.Discover():
                self.following = None
                others = [voter for voter in self.world.voters.ids() if voter != self.id]
                self.world.send(_Message(self.id, self.world.random.choice(others), "discover", None))
                self.later(FETCH_AGAIN_MS, self._discover_again)
            case happens.Truncate(offset):
                self.log.cut(offset)
                self.world.look(self)
            case happens.Append(records):
                self.log.entries += records
                self.flush()
            case happens.Commit(high_watermark):
                self.world.committed(self, high_watermark)
            case happens.Answer() | happens.AnswerFetch():
                self._reply(effect, event, sender)
            case happens.StepDown() | happens.LoadSnapshot():
                pass

    def _wake(self, number: int) -> None:
        if number == self._wakes:
            self.step(happens.Woken())

    def _discover_again(self) -> None:
        if self.machine is not None and self.machine.leader_id == NOBODY:
            others = [voter for voter in self.world.voters.ids() if voter != self.id]
            self.world.send(_Message(self.id, self.world.random.choice(others), "discover", None))
            self.later(FETCH_AGAIN_MS, self._discover_again)

    def flush(self) -> None:
        end = len(self.log.entries)

        def flushed() -> None:
            reached = min(end, len(self.log.entries))
            self.log.durable = max(self.log.durable, reached)
            self.step(happens.Flushed(self.log.durable))
            if self.following is not None:
                self.fetch()

        self.later(self.world.random.randrange(self._flush_ms_max), flushed)

    def fetch(self) -> None:
        """Ask the leader for what comes next; one question at a time, asked again if nothing comes back."""
        machine = self.machine
        if machine is None or self.following is None or self.log.durable < len(self.log.entries):
            return
        self._asked += 1
        number = self._asked
        epoch, leader_id = self.following
        asked = happens.FetchRequested(ReplicaKey(self.id, ZERO_UUID), epoch, self.log.end)
        self.world.send(_Message(self.id, leader_id, "request", asked, number))
        self.later(FETCH_AGAIN_MS, lambda: self.fetch() if self._asked == number else None)

    def _reply(self, effect: Any, event: Any, sender: int) -> None:
        machine = self.machine
        assert machine is not None
        told = (machine.epoch, machine.leader_id)
        if isinstance(effect, happens.Answer):
            self.world.send(_Message(self.id, sender, "answer", (told, effect), event))
            if effect.granted and not event.pre_vote and self.world.may_break(0.15):
                # The worst moment: a vote is given, and what the voter remembers is what it wrote down.
                self.later(0, self.world.crash_briefly(self))
            return
        records: list[tuple[int, str]] = []
        if effect.error is ErrorCode.NONE and effect.diverging is None:
            records = self.log.entries[event.end.offset : event.end.offset + self.world.random.randint(1, 4)]
        self.world.send(_Message(self.id, sender, "answer", (told, effect, records, machine.high_watermark), event))

    def receive(self, message: _Message) -> None:
        machine = self.machine
        if machine is None:
            return
        if message.kind == "request":
            self.step(message.content, message.source)
        elif message.kind == "discover":
            told = (machine.epoch, machine.leader_id)
            self.world.send(_Message(self.id, message.source, "answer", (told, None), None))
        else:
            self._receive_answer(message)

    def _receive_answer(self, message: _Message) -> None:
        (epoch, leader_id), effect, *rest = message.content
        asked = message.asked
        if isinstance(asked, happens.FetchRequested) and effect.error is ErrorCode.NONE:
            if asked.end != self.log.end:
                return  # a copy of an answer that was taken already
            records, mark = rest
            self.step(
                happens.FetchAnswered(message.source, asked.epoch, mark, records, effect.diverging, effect.snapshot)
            )
            if not records:
                self.later(self.world.random.randrange(5, 60), self.fetch)
            return
        self.step(happens.EpochSeen(epoch, leader_id))
        if isinstance(asked, happens.VoteRequested):
            self.step(happens.VoteAnswered(message.source, asked.epoch, effect.granted, asked.pre_vote))


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

    def send(self, message: _Message) -> None:
        if self._at_peace:
            self.at(self.random.randrange(2, 10), lambda: self._arrives(message))
            return
        if self.random.random() < 0.03:
            return
        for _ in range(2 if self.random.random() < 0.05 else 1):
            late = self.random.random() < 0.05
            delay_ms = self.random.randrange(2_500) if late else self.random.randrange(2, self.delay_ms_max)
            self.at(delay_ms, lambda: self._arrives(message))

    def _arrives(self, message: _Message) -> None:
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


__all__ = ["Member", "PureLog", "QuorumWorld", "run"]
