"""One member of the metadata quorum: Raft by KRaft's rules, as a pure protocol node.

    effects = node.step(event, now_ms)

A node is in one of four roles. *Unattached*: knows an epoch and no leader. *Candidate*: has raised the epoch, voted for
itself and asks the others. *Leader*: appends, and counts how far each voter's log reaches. *Follower*: fetches from
the leader. Every move into a role first persists the epoch and the vote (`Persist` comes first among the effects).

The rules that keep committed records safe:
- A leader never picks up its old epoch after a restart: it starts a new one, so an epoch has one leader at most.
- The high watermark is the offset that a majority of the voters holds durably, and it does not move before that
  majority holds the first record of the leader's own epoch (Raft, 5.4.2).
- Epochs and the high watermark never go back.

A quorum of one needs no one's answer: its own vote is a majority, and its own flush commits. Nothing here is special
about that; the votes and fetches of others arrive as events of the same machine. What only a quorum of many does
(pre-votes, answering vote requests, divergence of logs) has its place beside these roles.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from millstream.protocol.uuid import ZERO_UUID, Uuid
from millstream.quorum.election_state import NOBODY, ElectionState
from millstream.quorum.events import (
    AwaitElection,
    Commit,
    Effect,
    ElectionTimedOut,
    EpochSeen,
    Event,
    Flushed,
    Follow,
    Lead,
    Persist,
    RequestVotes,
    Started,
    VoteAnswered,
    VoterFetched,
    VotersChanged,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.quorum.voters import VoterSet

ELECTION_TIMEOUT_MS = 1_000


@dataclass(slots=True)
class Unattached:
    """Knows no leader in this epoch."""


@dataclass(slots=True)
class Candidate:
    """Asks for votes. Answers are kept by voter, so a repeated answer counts once."""

    granted: dict[int, bool] = field(default_factory=dict)

    def grants(self) -> tuple[int, ...]:
        return tuple(voter_id for voter_id, granted in self.granted.items() if granted)


@dataclass(slots=True)
class Leader:
    """Leads the epoch that began with the record at `epoch_start`; `ends` is how far each voter's log reaches."""

    epoch_start: int
    ends: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class Follower:
    """Fetches from the leader."""

    leader_id: int


Role = Unattached | Candidate | Leader | Follower


class QuorumNode:
    """The machine: see the module's docstring. `jitter_ms(bound)` spreads elections; it comes from the random port."""

    def __init__(
        self,
        *,
        node_id: int,
        directory_id: Uuid,
        voters: VoterSet,
        kraft_version: int,
        state: ElectionState,
        jitter_ms: Callable[[int], int],
    ) -> None:
        self.node_id = node_id
        self.directory_id = directory_id
        self.voters = voters
        self.kraft_version = kraft_version
        self.state = state
        self.role: Role = Unattached()
        self.high_watermark = 0
        self._jitter_ms = jitter_ms
        self._end_offset = 0
        self._last_epoch = 0

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leader_id(self) -> int:
        return self.state.leader_id if isinstance(self.role, Leader | Follower) else NOBODY

    @property
    def leads(self) -> bool:
        return isinstance(self.role, Leader)

    def step(self, event: Event, now_ms: int) -> list[Effect]:
        match event:
            case Started(end_offset, last_epoch):
                return self._start(end_offset, last_epoch, now_ms)
            case ElectionTimedOut():
                return [] if self.leads else self._stand(now_ms)
            case VoteAnswered():
                return self._count_vote(event)
            case Flushed(end_offset):
                self._end_offset = end_offset
                return self._voter_reached(self.node_id, end_offset)
            case VoterFetched(voter_id, directory_id, end_offset):
                return self._voter_reached(voter_id, end_offset) if self._is_voter(voter_id, directory_id) else []
            case EpochSeen(epoch, leader_id):
                return self._see(epoch, leader_id, now_ms)
            case VotersChanged(voters, kraft_version):
                self.voters, self.kraft_version = voters, kraft_version
                return self._advance()
            case _:
                assert_never(event)

    def _start(self, end_offset: int, last_epoch: int, now_ms: int) -> list[Effect]:
        self._end_offset, self._last_epoch = end_offset, last_epoch
        # The log may know of a newer epoch than the file: the log was synced, the file perhaps lost.
        if last_epoch > self.state.epoch:
            self.state = ElectionState(epoch=last_epoch)
        if self.voters.ids() == (self.node_id,) and self._is_voter(self.node_id, self.directory_id):
            return self._stand(now_ms)
        return [self._await_election(now_ms)]

    def _stand(self, now_ms: int) -> list[Effect]:
        """Become a candidate in a new epoch, with our own vote; with a majority of one, the leader at once."""
        if not self._is_voter(self.node_id, self.directory_id):
            return []
        own_directory = self.directory_id if self.kraft_version else ZERO_UUID
        self.state = ElectionState(epoch=self.state.epoch + 1, voted_id=self.node_id, voted_directory_id=own_directory)
        self.role = candidate = Candidate({self.node_id: True})
        effects: list[Effect] = [Persist(self.state)]
        if len(self.voters) == 1:
            return effects + self._lead(candidate)
        others = tuple(voter_id for voter_id in self.voters.ids() if voter_id != self.node_id)
        effects.append(RequestVotes(self.state.epoch, others, self._end_offset, self._last_epoch))
        effects.append(self._await_election(now_ms))
        return effects

    def _count_vote(self, answer: VoteAnswered) -> list[Effect]:
        if not isinstance(self.role, Candidate) or answer.epoch != self.epoch:
            return []
        if self.voters.find(answer.voter_id) is None:
            return []
        self.role.granted.setdefault(answer.voter_id, answer.granted)
        return self._lead(self.role) if len(self.role.grants()) >= self.voters.majority else []

    def _lead(self, candidate: Candidate) -> list[Effect]:
        self.role = Leader(epoch_start=self._end_offset)
        self.state = replace(self.state, leader_id=self.node_id, voted_id=NOBODY, voted_directory_id=ZERO_UUID)
        self._last_epoch = self.epoch
        return [Persist(self.state), Lead(self.epoch, self.voters.ids(), candidate.grants())]

    def _see(self, epoch: int, leader_id: int, now_ms: int) -> list[Effect]:
        if epoch < self.epoch or (epoch == self.epoch and leader_id in (NOBODY, self.leader_id)):
            return []
        voted = self.state.voted_id if epoch == self.epoch else NOBODY
        self.state = ElectionState(epoch=epoch, leader_id=leader_id, voted_id=voted)
        effects: list[Effect] = [Persist(self.state)]
        if leader_id == NOBODY:
            self.role = Unattached()
            return [*effects, self._await_election(now_ms)]
        assert leader_id != self.node_id, "someone else says that we lead an epoch which we don't know"
        self.role = Follower(leader_id)
        return [*effects, Follow(epoch, leader_id), self._await_election(now_ms)]

    def _voter_reached(self, voter_id: int, end_offset: int) -> list[Effect]:
        if not isinstance(self.role, Leader):
            return []
        self.role.ends[voter_id] = max(end_offset, self.role.ends.get(voter_id, 0))
        return self._advance()

    def _advance(self) -> list[Effect]:
        if not isinstance(self.role, Leader):
            return []
        ends = sorted((self.role.ends.get(voter.id, 0) for voter in self.voters), reverse=True)
        reached = ends[self.voters.majority - 1]
        if reached <= self.role.epoch_start or reached <= self.high_watermark:
            return []
        self.high_watermark = reached
        return [Commit(reached)]

    def _is_voter(self, node_id: int, directory_id: Uuid) -> bool:
        return self.voters.includes(node_id, directory_id)

    def _await_election(self, now_ms: int) -> AwaitElection:
        return AwaitElection(now_ms + ELECTION_TIMEOUT_MS + self._jitter_ms(ELECTION_TIMEOUT_MS))
