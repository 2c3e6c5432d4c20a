"""One voter in the world of quorum_world.py: the pure machine, a log that is a list, and a file that is bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum import events as happens
from millstream.quorum.election_state import NOBODY, ElectionState, decode_election_state, encode_election_state
from millstream.quorum.node import BrokenQuorum, QuorumNode
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import ReplicaKey
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.quorum_world import QuorumWorld

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
class Message:
    """A question ("request"), a search for the leader ("discover"), or an answer to what was `asked`."""

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
                    self.world.send(Message(self.id, voter.id, "request", asked))
            case happens.Lead(epoch):
                self.log.entries.append((epoch, f"leader {self.id}"))
                self.world.elected(self, epoch)
                self.flush()
            case happens.Announce(epoch, voters):
                for voter in voters:
                    self.world.send(Message(self.id, voter.id, "request", happens.LeaderAnnounced(self.id, epoch)))
            case happens.Retire(epoch, voters):
                order = tuple(voter.id for voter in voters)
                for voter in voters:
                    self.world.send(Message(self.id, voter.id, "request", happens.LeaderRetired(self.id, epoch, order)))
            case happens.Follow(epoch, leader_id):
                self.following = (epoch, leader_id)
                self.fetch()
            case happens.Discover():
                self.following = None
                others = [voter for voter in self.world.voters.ids() if voter != self.id]
                self.world.send(Message(self.id, self.world.random.choice(others), "discover", None))
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
            self.world.send(Message(self.id, self.world.random.choice(others), "discover", None))
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
        self.world.send(Message(self.id, leader_id, "request", asked, number))
        self.later(FETCH_AGAIN_MS, lambda: self.fetch() if self._asked == number else None)

    def _reply(self, effect: Any, event: Any, sender: int) -> None:
        machine = self.machine
        assert machine is not None
        told = (machine.epoch, machine.leader_id)
        if isinstance(effect, happens.Answer):
            self.world.send(Message(self.id, sender, "answer", (told, effect), event))
            if effect.granted and not event.pre_vote and self.world.may_break(0.15):
                # The worst moment: a vote is given, and what the voter remembers is what it wrote down.
                self.later(0, self.world.crash_briefly(self))
            return
        records: list[tuple[int, str]] = []
        if effect.error is ErrorCode.NONE and effect.diverging is None:
            records = self.log.entries[event.end.offset : event.end.offset + self.world.random.randint(1, 4)]
        self.world.send(Message(self.id, sender, "answer", (told, effect, records, machine.high_watermark), event))

    def receive(self, message: Message) -> None:
        machine = self.machine
        if machine is None:
            return
        if message.kind == "request":
            self.step(message.content, message.source)
        elif message.kind == "discover":
            told = (machine.epoch, machine.leader_id)
            self.world.send(Message(self.id, message.source, "answer", (told, None), None))
        else:
            self._receive_answer(message)

    def _receive_answer(self, message: Message) -> None:
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
