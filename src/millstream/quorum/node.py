"""One member of the metadata quorum: Raft by KRaft's rules, as a pure protocol node.

    effects = node.step(event, now_ms)

The roles are those of `roles.py`. Every move that others may hear of first persists the epoch and the vote (`Persist`
comes first among the effects).

The rules that keep committed records safe:
- A leader never picks up its old epoch after a restart: it starts a new one, so an epoch has one leader at most.
- A voter gives one vote in an epoch, and only to a log that is as new as its own (`voting.py`).
- The high watermark is the offset that a majority of the voters holds durably, and it does not move before that
  majority holds the first record of the leader's own epoch (Raft, 5.4.2).
- A follower matches its log with the leader's by epoch before it appends (`positions.py`), and never cuts off what it
  knows to be committed (KAFKA-12460).
- Epochs and the high watermark never go back.

And those that keep it alive: a replica without a leader asks around whether it would win before it raises the epoch
(KIP-996); a leader that a majority has stopped fetching from resigns (KAFKA-15489); one that stops hands over.

A quorum of one needs no one's answer: its own vote is a majority, and its own flush commits. Nothing here is special
about that. A replica that does not vote (a broker, a controller that is not or no longer a voter) runs the same
machine and never stands for election.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from millstream.protocol.error_codes import ErrorCode
from millstream.protocol.uuid import ZERO_UUID
from millstream.quorum import leading, upgrade
from millstream.quorum.election_state import NOBODY, ElectionState
from millstream.quorum.events import (
    Announce,
    Answer,
    AnswerFetch,
    Append,
    Discover,
    Effect,
    EpochSeen,
    Event,
    FetchAnswered,
    FetchRequested,
    Flushed,
    Follow,
    Lead,
    LeaderAnnounced,
    LeaderLost,
    LeaderRetired,
    LoadSnapshot,
    Persist,
    PieceRequested,
    RequestVotes,
    Retire,
    SnapshotLoaded,
    Started,
    StepDown,
    Stopping,
    Truncate,
    VoteAnswered,
    VoteRequested,
    VoterIntroduced,
    VotersChanged,
    Wake,
    Woken,
)
from millstream.quorum.positions import Agrees, Behind, Diverges, compare, truncation_point
from millstream.quorum.roles import Ballot, Candidate, Follower, Leader, Progress, Prospective, Resigned, Unattached
from millstream.quorum.state import QuorumState, QuorumTimeouts
from millstream.quorum.voters import DYNAMIC, Voter
from millstream.quorum.voting import may_vote, would_vote

if TYPE_CHECKING:
    from millstream.quorum.voters import VoterEndpoint, VoterSet

__all__ = ["BrokenQuorum", "QuorumNode", "QuorumTimeouts"]


class BrokenQuorum(Exception):
    """Something that the rules rule out: two leaders of an epoch, or a leader that lacks what was committed."""


class QuorumNode(QuorumState):
    """The machine: see the module's docstring."""

    def step(self, event: Event, now_ms: int) -> list[Effect]:  # noqa: C901, PLR0912  # one line for each event
        match event:
            case Started():
                return self._start(now_ms)
            case Woken():
                return self._wake(now_ms)
            case EpochSeen(epoch, leader_id):
                return self._see(epoch, leader_id, now_ms)
            case VoteRequested():
                return self._answer_vote(event, now_ms)
            case VoteAnswered():
                return self._count_vote(event, now_ms)
            case LeaderAnnounced() | LeaderRetired():
                return self._hear_leader(event, now_ms)
            case FetchRequested():
                return self._answer_fetch(event, now_ms)
            case PieceRequested(replica, epoch):
                if epoch == self.epoch and isinstance(self.role, Leader):
                    leading.note_piece(self.role, replica, self.voters, now_ms)
                return []
            case FetchAnswered():
                return self._take_fetched(event, now_ms)
            case LeaderLost(leader_id, epoch):
                return self._lose_leader(leader_id, epoch, now_ms)
            case SnapshotLoaded(at):
                return self._commit(at.offset)
            case Flushed(end_offset):
                return self._flushed(end_offset, now_ms)
            case VotersChanged():
                return self._change_voters(event, now_ms)
            case VoterIntroduced(voter, epoch):
                return [Answer(self._introduced(voter, epoch))]
            case Stopping():
                return self._resign(now_ms) if self.leads else []
            case _:
                assert_never(event)

    # Coming up, and the clock

    def _start(self, now_ms: int) -> list[Effect]:
        # The log may know of a newer epoch than the file: the log was synced, the file perhaps lost.
        if self._log.end.epoch > self.state.epoch:
            self.state = ElectionState(epoch=self._log.end.epoch)
        snapshot = self._log.latest_snapshot
        if snapshot is not None:
            self.high_watermark = snapshot.offset
        if self.is_voter and len(self.voters) == 1:
            return self._stand(now_ms)
        # Whoever is up first need not wait long: that others would vote for it is asked before anything is changed.
        return [Discover(), self._wake_at(now_ms + self._jitter_ms(max(1, self.timeouts.election_ms // 2)))]

    def _wake(self, now_ms: int) -> list[Effect]:
        if now_ms < self._deadline_ms:
            return [Wake(self._deadline_ms)]
        match self.role:
            case Leader() as role:
                return self._check_on_followers(role, now_ms)
            case Prospective():
                return self._not_elected(now_ms)
            case Unattached() | Follower() | Candidate() | Resigned():
                return self._ask_for_support(now_ms) if self.can_stand else self._lose_sight(now_ms)

    def _lose_sight(self, now_ms: int) -> list[Effect]:
        """A replica that cannot stand looks for a leader for as long as it takes."""
        self.role = Unattached()
        return [Discover(), self._await_election(now_ms)]

    # Elections

    def _ask_for_support(self, now_ms: int) -> list[Effect]:
        """Would a majority vote for us? Nothing changes by the question."""
        self.role = Prospective(Ballot({self.node_id: True}))
        if self.role.ballot.is_won(self.voters):
            return self._stand(now_ms)
        return [RequestVotes(self.epoch, self._others(), self._log.end, pre_vote=True), self._await_opinions(now_ms)]

    def _stand(self, now_ms: int) -> list[Effect]:
        """Become a candidate in a new epoch, with our own vote; with a majority of one, the leader at once."""
        own_directory = self.directory_id if self.kraft_version else ZERO_UUID
        self.state = ElectionState(epoch=self.epoch + 1, voted_id=self.node_id, voted_directory_id=own_directory)
        self.role = candidate = Candidate(Ballot({self.node_id: True}))
        effects: list[Effect] = [Persist(self.state)]
        if candidate.ballot.is_won(self.voters):
            return effects + self._lead(candidate, now_ms)
        return [
            *effects,
            RequestVotes(self.epoch, self._others(), self._log.end, pre_vote=False),
            self._await_election(now_ms),
        ]

    def _count_vote(self, answer: VoteAnswered, now_ms: int) -> list[Effect]:
        role = self.role
        awaited = Prospective if answer.pre_vote else Candidate
        if not isinstance(role, awaited) or answer.epoch != self.epoch or self.voters.find(answer.voter_id) is None:
            return []
        ballot = role.ballot
        ballot.granted.setdefault(answer.voter_id, answer.granted)
        if ballot.is_won(self.voters):
            return self._lead(role, now_ms) if isinstance(role, Candidate) else self._stand(now_ms)
        if ballot.is_lost(self.voters) and isinstance(role, Prospective):
            return self._not_elected(now_ms)
        return []

    def _not_elected(self, now_ms: int) -> list[Effect]:
        """Too few would vote for us: go back to the leader we know, or wait for one to be found."""
        if self.state.leader_id not in (NOBODY, self.node_id):
            # If it lives, its answer to our next fetch gives it all its time; if not, others will miss it soon, too.
            self.role = Follower(self.state.leader_id)
            return [Follow(self.epoch, self.state.leader_id), self._await_opinions(now_ms)]
        self.role = Unattached()
        return [Discover(), self._await_election(now_ms)]

    def _answer_vote(self, request: VoteRequested, now_ms: int) -> list[Effect]:
        if request.epoch < self.epoch:
            return [Answer(ErrorCode.FENCED_LEADER_EPOCH)]
        effects: list[Effect] = []
        if request.epoch > self.epoch:
            effects += self._see(request.epoch, NOBODY, now_ms)
        is_new_enough = request.end.is_as_new_as(self._log.end)
        if request.pre_vote:
            certain = isinstance(self.role, Leader) and self.high_watermark > self.role.epoch_start
            granted = would_vote(self.role, log_is_new_enough=is_new_enough, leads_for_certain=certain)
            return [*effects, Answer(granted=granted)]
        if not may_vote(self.role, self.state, request.candidate, log_is_new_enough=is_new_enough):
            return [*effects, Answer()]
        directory_id = request.candidate.directory_id if self.kraft_version else ZERO_UUID
        self.state = ElectionState(epoch=self.epoch, voted_id=request.candidate.id, voted_directory_id=directory_id)
        self.role = Unattached()
        return [*effects, Persist(self.state), self._await_election(now_ms), Answer(granted=True)]

    # Leading

    def _lead(self, candidate: Candidate, now_ms: int) -> list[Effect]:
        self.role = Leader(epoch_start=self._log.end.offset, since_ms=now_ms, announced_ms=now_ms)
        self.state = replace(self.state, leader_id=self.node_id, voted_id=NOBODY, voted_directory_id=ZERO_UUID)
        effects: list[Effect] = [
            Persist(self.state),
            Lead(self.epoch, self.voters.ids(), candidate.ballot.grants(self.voters)),
        ]
        if len(self.voters) > 1:
            effects += [Announce(self.epoch, self._others()), self._wake_at(now_ms + self.timeouts.announce_ms)]
        return effects

    def _check_on_followers(self, role: Leader, now_ms: int) -> list[Effect]:
        heard_ms = leading.heard_majority_at_ms(role, self.voters, self.node_id, now_ms)
        resign_ms = heard_ms + self.timeouts.check_quorum_ms
        if now_ms >= resign_ms:
            return self._resign(now_ms)
        effects: list[Effect] = []
        if now_ms - role.announced_ms >= self.timeouts.announce_ms:
            silent = leading.silent_voters(role, self.voters, self.node_id, role.announced_ms)
            role.announced_ms = now_ms
            if silent:
                effects.append(Announce(self.epoch, tuple(key for key in self._others() if key.id in silent)))
        return [*effects, self._wake_at(min(resign_ms, role.announced_ms + self.timeouts.announce_ms))]

    def _resign(self, now_ms: int) -> list[Effect]:
        assert isinstance(self.role, Leader)
        order = leading.successors(self.role, self.voters, self.node_id)
        keys = {key.id: key for key in self._others()}
        self.role = Resigned()
        return [
            StepDown(),
            Retire(self.epoch, tuple(keys[voter_id] for voter_id in order)),
            self._await_election(now_ms),
        ]

    def _flushed(self, end_offset: int, now_ms: int) -> list[Effect]:
        if isinstance(self.role, Leader):
            own = self.role.voters.setdefault(self.node_id, Progress())
            own.end_offset = max(end_offset, own.end_offset)
            return self._advance(now_ms)
        if isinstance(self.role, Follower):
            return self._commit(min(self.role.leader_high_watermark, end_offset))
        return []

    def _answer_fetch(self, request: FetchRequested, now_ms: int) -> list[Effect]:
        role = self.role
        if request.epoch < self.epoch:
            return [AnswerFetch(ErrorCode.FENCED_LEADER_EPOCH)]
        if request.epoch > self.epoch:
            return [AnswerFetch(ErrorCode.UNKNOWN_LEADER_EPOCH)]
        if not isinstance(role, Leader):
            return [AnswerFetch(ErrorCode.NOT_LEADER_OR_FOLLOWER)]
        match compare(self._log, request.end):
            case Diverges(at):
                return [AnswerFetch(diverging=at)]
            case Behind(snapshot):
                return [AnswerFetch(snapshot=snapshot)]
            case Agrees():
                if request.is_new and request.replica.id >= 0:  # whoever has no number only looks on
                    upgrade.note_directory(role, request.replica)
                    leading.note_fetch(role, request.replica, self.voters, self._log, request.end.offset, now_ms)
                return [*self._advance(now_ms), AnswerFetch()]

    def _advance(self, now_ms: int) -> list[Effect]:
        if not isinstance(self.role, Leader):
            return []
        reached = leading.held_by_majority(self.role, self.voters)
        if reached <= self.role.epoch_start:
            return []
        effects = self._commit(reached)
        if not self.is_voter and self.high_watermark > self._voters_offset:
            # We were removed, and it is certain now: the others go on without us.
            effects += self._resign(now_ms)
        return effects

    def _change_voters(self, change: VotersChanged, now_ms: int) -> list[Effect]:
        self.voters, self.kraft_version = change.voters, change.kraft_version
        self._voters_offset, self._former_voters = change.offset, change.former
        if not isinstance(self.role, Leader):
            return []
        leading.follow_voters(self.role, self.voters, now_ms)
        watch = [self._wake_at(now_ms + self.timeouts.announce_ms)] if len(self.voters) > 1 else []
        return [*watch, *self._advance(now_ms)]

    def _introduced(self, voter: Voter, epoch: int) -> ErrorCode:
        """Only in the voter's own epoch, and by a leader that knows itself to be one: so says Kafka."""
        if epoch != self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH if epoch < self.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
        if not isinstance(self.role, Leader):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.high_watermark <= self.role.epoch_start:
            return ErrorCode.REQUEST_TIMED_OUT
        return upgrade.introduce(self.role, self.voters, voter)

    def upgraded_voters(self, own_endpoints: tuple[VoterEndpoint, ...]) -> VoterSet:
        """The voters that a batch with kraft.version 1 would name; UpgradeRefused where not all of them are known."""
        if not isinstance(self.role, Leader) or self.kraft_version >= DYNAMIC:
            raise upgrade.UpgradeRefused("this node does not lead a quorum of fixed voters.")
        own = Voter(self.node_id, self.directory_id, own_endpoints)
        return upgrade.upgraded_voters(self.role, self.voters, own)

    # Following

    def _see(self, epoch: int, leader_id: int, now_ms: int, *, from_leader: bool = False) -> list[Effect]:
        """Someone speaks of this epoch, and perhaps of its leader."""
        if epoch < self.epoch or (epoch == self.epoch and leader_id in (NOBODY, self.node_id)):
            return []
        if epoch == self.epoch:
            if isinstance(self.role, Leader) or self.state.leader_id not in (NOBODY, leader_id):
                raise BrokenQuorum(f"epoch {epoch} has the leaders {self.state.leader_id} and {leader_id}")
            is_no_news = leader_id == self.state.leader_id and not from_leader
            if isinstance(self.role, Follower) or (isinstance(self.role, Prospective) and is_no_news):
                # Whoever has missed the leader is not helped by others who have not missed it yet.
                return []
        effects: list[Effect] = []
        if epoch > self.epoch or leader_id != self.state.leader_id:
            voted = self.state if epoch == self.epoch else ElectionState()
            self.state = replace(voted, epoch=epoch, leader_id=leader_id)
            effects.append(Persist(self.state))
        if isinstance(self.role, Leader):
            effects.append(StepDown())
        if leader_id in (NOBODY, self.node_id):
            self.role = Unattached()
            return [*effects, Discover(), self._await_election(now_ms)]
        return effects + self._follow(leader_id, now_ms)

    def _follow(self, leader_id: int, now_ms: int) -> list[Effect]:
        self.role = Follower(leader_id)
        return [Follow(self.epoch, leader_id), self._await_fetch(now_ms)]

    def _hear_leader(self, event: LeaderAnnounced | LeaderRetired, now_ms: int) -> list[Effect]:
        if event.epoch < self.epoch:
            return [Answer(ErrorCode.FENCED_LEADER_EPOCH)]
        effects = self._see(event.epoch, event.leader_id, now_ms, from_leader=isinstance(event, LeaderAnnounced))
        if isinstance(self.role, Follower):
            if isinstance(event, LeaderAnnounced):
                effects.append(self._await_fetch(now_ms))
            elif self.can_stand and self.node_id in event.successors:
                # The first in line stands at once, each further one a while later.
                place = event.successors.index(self.node_id)
                pause_ms = self.timeouts.election_ms * place // 2 + (self._jitter_ms(50) if place else 0)
                self.role.has_fetched = False
                effects.append(self._wake_at(now_ms + pause_ms))
        return [*effects, Answer()]

    def _take_fetched(self, answer: FetchAnswered, now_ms: int) -> list[Effect]:
        role = self.role
        if not isinstance(role, Follower) or (answer.epoch, answer.leader_id) != (self.epoch, role.leader_id):
            return []
        role.has_fetched = True
        effects: list[Effect] = [self._await_fetch(now_ms)]
        if answer.diverging is not None:
            offset = truncation_point(self._log, answer.diverging)
            if offset < self.high_watermark:
                raise BrokenQuorum(
                    f"the leader {role.leader_id} of epoch {self.epoch} parts from this log at {offset}, "
                    f"where everything before {self.high_watermark} is committed"
                )
            return [*effects, Truncate(offset)]
        if answer.snapshot is not None:
            return [*effects, LoadSnapshot(answer.snapshot)]
        role.leader_high_watermark = max(role.leader_high_watermark, answer.high_watermark)
        if answer.records:
            # What is committed of it shows when it is on our disk.
            return [*effects, Append(answer.records)]
        return effects + self._commit(min(role.leader_high_watermark, self._log.end.offset))

    def _lose_leader(self, leader_id: int, epoch: int, now_ms: int) -> list[Effect]:
        role = self.role
        if not isinstance(role, Follower) or (epoch, leader_id) != (self.epoch, role.leader_id):
            return []
        role.has_fetched = False
        soon_ms = now_ms + self._jitter_ms(max(1, self.timeouts.election_ms // 4))
        return [self._wake_at(soon_ms)] if soon_ms < self._deadline_ms else []
