"""Many quorum nodes, a random network between them, and disks that lose what was not synced: all of it in plain lists.

    quorum = Harness(seed=7, voters=3)
    quorum.run(steps=500)      # elections, appends, lost and late messages, crashes
    quorum.heal()              # everything comes back
    quorum.settle()            # until all agree

After every step the invariants are checked: one leader at most in an epoch, nothing committed is ever lost or changed,
high watermarks and epochs only grow, and what a leader commits is on the disks of a majority.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import ZERO_UUID, Uuid
from millstream.quorum.election_state import ElectionState
from millstream.quorum.events import (
    Announce,
    Answer,
    AnswerFetch,
    Append,
    Commit,
    Discover,
    EpochSeen,
    FetchAnswered,
    FetchRequested,
    Flushed,
    Follow,
    Lead,
    LeaderAnnounced,
    LeaderRetired,
    LoadSnapshot,
    Persist,
    RequestVotes,
    Retire,
    SnapshotLoaded,
    Started,
    StepDown,
    Stopping,
    Truncate,
    VoteAnswered,
    VoteRequested,
    VotersChanged,
    Wake,
    Woken,
)
from millstream.quorum.node import QuorumNode
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import Follower, Leader, ReplicaKey
from millstream.quorum.voters import DYNAMIC, STATIC, Voter, VoterSet

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.quorum.events import Effect, Event

FETCH_RECORDS_MAX = 3
FETCH_EVERY_MS = 100


def level_of(voters: VoterSet) -> int:
    """kraft.version: voters whose directories are known stand in the log."""
    return DYNAMIC if all(voter.directory_id != ZERO_UUID for voter in voters) else STATIC


class Record(NamedTuple):
    """A record is its epoch and something that tells it apart; it may name new voters."""

    epoch: int
    value: int
    voters: VoterSet | None = None


@dataclass
class ListLog:
    """A log as a list, whose beginning may be in a snapshot."""

    start_offset: int = 0
    records: list[Record] = field(default_factory=list)
    snapshot: LogPosition | None = None
    flushed: int = 0

    @property
    def end(self) -> LogPosition:
        if self.records:
            return LogPosition(self.start_offset + len(self.records), self.records[-1].epoch)
        return self.snapshot or LogPosition(0, 0)

    @property
    def latest_snapshot(self) -> LogPosition | None:
        return self.snapshot

    @property
    def earliest_snapshot(self) -> LogPosition | None:
        return self.snapshot

    def end_of_epoch(self, epoch: int) -> LogPosition:
        known = self.snapshot.epoch if self.snapshot else 0
        offset = self.start_offset
        if epoch > self.end.epoch:
            return self.end
        for record in self.records:
            if record.epoch > epoch:
                return LogPosition(offset, min(known, epoch))
            known, offset = record.epoch, offset + 1
        return LogPosition(offset, known)

    def read(self, offset: int) -> list[Record]:
        return self.records[offset - self.start_offset :][:FETCH_RECORDS_MAX]

    def truncate(self, offset: int) -> None:
        assert offset >= self.start_offset
        del self.records[offset - self.start_offset :]
        self.flushed = min(self.flushed, offset)

    def begin_behind(self, snapshot: LogPosition) -> None:
        self.start_offset, self.records, self.snapshot = snapshot.offset, [], snapshot
        self.flushed = snapshot.offset

    def compact(self, offset: int) -> None:
        """Put everything before `offset` into a snapshot."""
        count = offset - self.start_offset
        if count > 0:
            self.snapshot = LogPosition(offset, self.records[count - 1].epoch)
            del self.records[:count]
            self.start_offset = offset

    def lose_unsynced(self) -> None:
        self.truncate(max(self.flushed, self.start_offset))


class Member:
    """One node with its disk. `durable` is the election state that survives a crash."""

    def __init__(self, harness: Harness, node_id: int, *, votes: bool = True, directory_id: Uuid = ZERO_UUID) -> None:
        self.harness = harness
        self.id = node_id
        self.directory_id = directory_id
        self.votes = votes
        self.log = ListLog()
        self.durable = ElectionState()
        self.up = False
        self.node = self._new_node()
        self.wake_at_ms: int | None = None
        self.generation = 0
        self.fetching: int | None = None

    def _new_node(self) -> QuorumNode:
        voters, offset, former = self.voters_by_log()
        return QuorumNode(
            node_id=self.id,
            directory_id=self.directory_id,
            voters=voters,
            voters_offset=offset,
            former_voters=former,
            kraft_version=level_of(voters),
            state=self.durable,
            log=self.log,
            jitter_ms=self.harness.random.randrange,
            may_stand=self.votes,
        )

    def voters_by_log(self) -> tuple[VoterSet, int, VoterSet | None]:
        """The last voters that the log names, committed or not, and where; and those before them."""
        found = [(self.harness.voters_at(self.log.start_offset), self.log.start_offset - 1)]
        for offset, record in enumerate(self.log.records, self.log.start_offset):
            if record.voters is not None:
                found.append((record.voters, offset))
        return *found[-1], found[-2][0] if len(found) > 1 else None

    def _follow_voters(self) -> None:
        voters, offset, former = self.voters_by_log()
        if voters != self.node.voters:
            self.step(VotersChanged(voters, level_of(voters), offset, former))

    def propose_voters(self) -> None:
        """Add or remove one at random, if the last change is committed and so is something of this epoch."""
        role = self.node.role
        voters, offset, _ = self.voters_by_log()
        certain = isinstance(role, Leader) and offset < self.node.high_watermark > role.epoch_start
        other = self.harness.random.choice(list(self.harness.members.values()))
        if not certain:
            return
        if voters.find(other.id) is None:
            if other.log.end.offset >= self.node.high_watermark:
                self._append_voters(VoterSet((*voters, Voter(other.id, other.directory_id))))
        elif len(voters) > 1:
            self._append_voters(VoterSet(tuple(voter for voter in voters if voter.id != other.id)))

    def _append_voters(self, voters: VoterSet) -> None:
        self.log.records.append(self.harness.new_record(self.node.epoch)._replace(voters=voters))
        self.harness.reconfigurations += 1
        self._follow_voters()

    def start(self) -> None:
        self.up = True
        self.generation += 1
        self.fetching = None
        self.node = self._new_node()
        self.step(Started())
        self.step(Flushed(self.log.flushed))

    def crash(self) -> None:
        self.up = False
        self.wake_at_ms = None
        self.log.lose_unsynced()

    def step(self, event: Event) -> Answer | AnswerFetch | None:
        answer: Answer | AnswerFetch | None = None
        for effect in self.node.step(event, self.harness.now_ms):
            if isinstance(effect, Answer | AnswerFetch):
                answer = effect
            else:
                self._carry_out(effect)
        return answer

    def _carry_out(self, effect: Effect) -> None:  # noqa: C901  # one line for each effect
        harness = self.harness
        match effect:
            case Persist(state):
                self.durable = state
            case Wake(at_ms):
                self.wake_at_ms = at_ms
            case Lead(epoch):
                harness.note_leader(epoch, self.id)
                self.log.records.append(harness.new_record(epoch))
            case Truncate(offset):
                self.log.truncate(offset)
                self._follow_voters()
            case Append(records):
                self.log.records.extend(records)
                self._follow_voters()
            case LoadSnapshot(snapshot):
                self.log.begin_behind(snapshot)
                harness.check_snapshot(snapshot)
                self._follow_voters()
                self.step(SnapshotLoaded(snapshot))
            case Commit(high_watermark):
                harness.note_committed(self, high_watermark)
            case RequestVotes() | Announce() | Retire():
                self._tell_voters(effect)
            case Follow() | Discover():
                self.fetching = None
            case StepDown():
                pass
            case _:
                raise AssertionError(effect)

    def _tell_voters(self, effect: RequestVotes | Announce | Retire) -> None:
        own = ReplicaKey(self.id, self.directory_id)
        for voter in effect.voters:
            match effect:
                case RequestVotes(epoch, _, end, pre_vote):
                    self._ask_vote(voter, VoteRequested(own, epoch, end, pre_vote))
                case Announce(epoch):
                    self._tell(voter, LeaderAnnounced(self.id, epoch))
                case Retire(epoch, voters):
                    self._tell(voter, LeaderRetired(self.id, epoch, tuple(key.id for key in voters)))

    def _ask_vote(self, voter: ReplicaKey, question: VoteRequested) -> None:
        def answered(answer: Answer, epoch: int, leader_id: int) -> None:
            self.step(EpochSeen(epoch, leader_id))
            granted = answer.error is ErrorCode.NONE and answer.granted
            self.step(VoteAnswered(voter.id, question.epoch, granted, question.pre_vote))

        self.harness.send(self, voter.id, question, answered, directory_id=voter.directory_id)

    def _tell(self, voter: ReplicaKey, news: LeaderAnnounced | LeaderRetired) -> None:
        def answered(_: Answer, epoch: int, leader_id: int) -> None:
            self.step(EpochSeen(epoch, leader_id))

        self.harness.send(self, voter.id, news, answered, directory_id=voter.directory_id)

    def fetch(self) -> None:
        """One fetch at a time; what it says to hold is on disk."""
        if self.node.leads or self.fetching is not None or self.log.flushed < self.log.end.offset:
            return
        role = self.node.role
        harness = self.harness
        target = role.leader_id if isinstance(role, Follower) else harness.random.choice(list(harness.members))
        if target == self.id:
            return
        harness.fetches += 1
        self.fetching = number = harness.fetches
        epoch = self.node.epoch
        question = FetchRequested(ReplicaKey(self.id, self.directory_id), epoch, self.log.end)

        def answered(answer: AnswerFetch, leader_epoch: int, leader_id: int) -> None:
            if self.fetching != number:
                return
            self.fetching = None
            self.step(EpochSeen(leader_epoch, leader_id))
            if answer.error is ErrorCode.NONE:
                records, high_watermark = harness.enclosed.pop(number)
                self.step(FetchAnswered(target, epoch, high_watermark, records, answer.diverging, answer.snapshot))

        def given_up() -> None:
            if self.fetching == number:
                self.fetching = None

        harness.send(self, target, question, answered, enclose=number)
        harness.later(500, self, given_up)

    def flush(self) -> None:
        if self.log.flushed < self.log.end.offset:
            self.log.flushed = self.log.end.offset
            self.step(Flushed(self.log.flushed))


class Harness:
    """See the module's docstring."""

    def __init__(
        self, seed: int, voters: int = 3, observers: int = 0, *, faults: bool = True, dynamic: bool = False
    ) -> None:
        self.random = Random(seed)
        self.now_ms = 0
        self.fetches = 0
        self.faults = faults
        self.dynamic = dynamic
        self.reconfigurations = 0
        self.first_voters = VoterSet(tuple(Voter(voter_id) for voter_id in range(1, voters + 1)))
        self.committed: list[Record] = []
        ids = range(1, voters + observers + 1)
        self.members = {each: Member(self, each, votes=dynamic or each <= voters) for each in ids}
        self.cut: set[tuple[int, int]] = set()
        self.enclosed: dict[int, tuple[list[Record], int]] = {}
        self.leaders: dict[int, int] = {}
        self._values = 0
        self._events: list[tuple[int, int, Member, int, Callable[[], None]]] = []
        self._sequence = 0
        for member in self.members.values():
            member.start()

    # The network

    def send(
        self,
        sender: Member,
        to: int,
        question: Event,
        answered: Callable[..., object],
        enclose: int = 0,
        directory_id: Uuid = ZERO_UUID,
    ) -> None:
        """`directory_id`: who is asked for something as a voter does not answer for one that had its number before."""
        receiver = self.members[to]

        def arrives() -> None:
            if directory_id in (ZERO_UUID, receiver.directory_id):
                answer = receiver.step(question)
            else:
                answer = Answer(ErrorCode.INVALID_VOTER_KEY)
            if enclose and answer == AnswerFetch():
                assert isinstance(question, FetchRequested)
                found = receiver.log.read(question.end.offset)
                self.enclosed[enclose] = (found, receiver.node.high_watermark)
            elif enclose:
                self.enclosed[enclose] = ([], -1)
            epoch, leader_id = receiver.node.epoch, receiver.node.leader_id
            if self._gets_through(to, sender.id):
                self.later(self._delay_ms(), sender, lambda: answered(answer, epoch, leader_id))

        for _ in range(2 if self.faults and not enclose and self.random.random() < 0.05 else 1):
            if self._gets_through(sender.id, to):
                self.later(self._delay_ms(), receiver, arrives)

    def _gets_through(self, sender: int, receiver: int) -> bool:
        return (sender, receiver) not in self.cut and not (self.faults and self.random.random() < 0.05)

    def _delay_ms(self) -> int:
        return self.random.randrange(1, 2000 if self.faults and self.random.random() < 0.05 else 20)

    def later(self, delay_ms: int, member: Member, call: Callable[[], None]) -> None:
        """A restart of the member forgets it."""
        self._sequence += 1
        self._events.append((self.now_ms + delay_ms, self._sequence, member, member.generation, call))

    # Time

    def advance(self, duration_ms: int) -> None:
        """Let this much time pass, with everything that falls due in it."""
        until = self.now_ms + duration_ms
        while True:
            timers = [
                (each.wake_at_ms, each.id) for each in self.members.values() if each.up and each.wake_at_ms is not None
            ]
            next_timer = min(timers, default=None)
            next_event = min(self._events, key=lambda event: event[:2], default=None)
            due = [at for at in (next_timer and next_timer[0], next_event and next_event[0]) if at is not None]
            if not due or min(due) > until:
                break
            self.now_ms = max(self.now_ms, min(due))
            if next_event is not None and next_event[0] == min(due):
                self._events.remove(next_event)
                _, _, member, generation, call = next_event
                if member.up and member.generation == generation:
                    call()
            elif next_timer is not None:
                member = self.members[next_timer[1]]
                member.wake_at_ms = None
                member.step(Woken())
            self.check()
        self.now_ms = until

    def tick(self) -> None:
        """A tenth of a second of a living quorum: disks sync, followers fetch, the leader appends."""
        for member in self.members.values():
            if member.up:
                if not self.faults or self.random.random() < 0.8:
                    member.flush()
                member.fetch()
                if member.node.leads and self.random.random() < 0.5:
                    member.log.records.append(self.new_record(member.node.epoch))
                if member.node.leads and self.dynamic and self.faults and self.random.random() < 0.1:
                    member.propose_voters()
        self.advance(FETCH_EVERY_MS)
        self.check()

    def run(self, ticks: int) -> None:
        """Ticks with faults between them."""
        for _ in range(ticks):
            self._make_trouble()
            self.tick()

    def _make_trouble(self) -> None:
        dice = self.random.random()
        member = self.random.choice(list(self.members.values()))
        if dice < 0.04 and member.up:
            (self.leader or member if dice < 0.02 else member).crash()
        elif dice < 0.12 and not member.up:
            member.start()
        elif dice < 0.15:
            other = self.random.choice(list(self.members))
            self.cut.add((member.id, other))
            if self.random.random() < 0.5:
                self.cut.add((other, member.id))
        elif dice < 0.19:
            self.cut.clear()
        elif dice < 0.21 and member.up and member.node.high_watermark > member.log.start_offset:
            member.log.compact(self.random.randrange(member.log.start_offset, member.node.high_watermark) + 1)
        elif dice < 0.22 and member.up:
            member.step(Stopping())

    def heal(self) -> None:
        self.cut.clear()
        self.faults = False
        for member in self.members.values():
            if not member.up:
                member.start()

    def settle(self, ticks: int = 200) -> None:
        """Until one leads, all follow, and all know everything to be committed."""
        for _ in range(ticks):
            self.tick()
            if self.leader is not None and all(
                each.node.high_watermark == self.leader.log.end.offset for each in self.members.values()
            ):
                return
        raise AssertionError(f"no agreement at {self.now_ms} ms: " + "; ".join(map(describe, self.members.values())))

    @property
    def leader(self) -> Member | None:
        leading = [member for member in self.members.values() if member.up and member.node.leads]
        return max(leading, key=lambda member: member.node.epoch, default=None)

    # What is checked

    def voters_at(self, offset: int) -> VoterSet:
        """Who voted by what is committed before `offset`."""
        named = (record.voters for record in reversed(self.committed[:offset]) if record.voters is not None)
        return next(named, self.first_voters)

    def new_record(self, epoch: int) -> Record:
        self._values += 1
        return Record(epoch, self._values)

    def note_leader(self, epoch: int, node_id: int) -> None:
        assert self.leaders.setdefault(epoch, node_id) == node_id, f"two leaders of epoch {epoch}"

    def note_committed(self, member: Member, high_watermark: int) -> None:
        log = member.log
        assert high_watermark <= log.end.offset
        first = max(log.start_offset, 0)
        known = self.committed[first:high_watermark]
        there = log.records[: high_watermark - first]
        assert there[: len(known)] == known, f"node {member.id} commits other records than were committed before"
        if high_watermark > len(self.committed):
            assert first <= len(self.committed)
            self.committed += there[len(known) :]
            voters = member.node.voters
            holders = [voter for voter in voters if self._holds(self.members[voter.id], high_watermark)]
            assert len(holders) > len(voters) // 2, f"{high_watermark} is committed without a majority"

    def _holds(self, member: Member, offset: int) -> bool:
        log = member.log
        if log.flushed < offset:
            return False
        first = log.start_offset
        return offset <= first or log.records[: offset - first] == self.committed[first:offset]

    def check_snapshot(self, snapshot: LogPosition) -> None:
        assert snapshot.offset <= len(self.committed)
        assert self.committed[snapshot.offset - 1].epoch == snapshot.epoch

    def check(self) -> None:
        for member in self.members.values():
            if member.up:
                assert member.durable.epoch <= member.node.epoch or member.node.epoch == member.durable.epoch
                self._check_prefix(member)

    def _check_prefix(self, member: Member) -> None:
        first, upto = member.log.start_offset, member.node.high_watermark
        assert member.log.records[: max(0, upto - first)] == self.committed[first:upto] or upto <= first


def describe(member: Member) -> str:
    node = member.node
    return (
        f"{member.id} {type(node.role).__name__} epoch {node.epoch} leader {node.leader_id} "
        f"end {member.log.end} flushed {member.log.flushed} committed {node.high_watermark}"
    )
