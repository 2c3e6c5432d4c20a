"""One node of the harness: the pure machine, with a log in a list and a disk that loses what was not synced."""

from __future__ import annotations

from dataclasses import dataclass, field
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
    Truncate,
    VoteAnswered,
    VoteRequested,
    VotersChanged,
    Wake,
)
from millstream.quorum.node import QuorumNode
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import Follower, Leader, ReplicaKey
from millstream.quorum.voters import DYNAMIC, STATIC, Voter, VoterSet

if TYPE_CHECKING:
    from millstream.quorum.events import Effect, Event
    from tests.quorum.harness import Harness

FETCH_RECORDS_MAX = 3


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
