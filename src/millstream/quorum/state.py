"""What a quorum node knows: who it is, who votes, which epoch it is, and what role it plays in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.quorum.election_state import NOBODY, ElectionState
from millstream.quorum.events import Commit, Effect, Wake
from millstream.quorum.roles import Follower, Leader, ReplicaKey, Role, Unattached

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.protocol.uuid import Uuid
    from millstream.quorum.positions import LogView
    from millstream.quorum.voters import VoterSet


@dataclass(frozen=True, slots=True)
class QuorumTimeouts:
    """Kafka's controller.quorum.* settings, with its defaults."""

    election_ms: int = 1_000
    backoff_ms_max: int = 1_000
    fetch_ms: int = 2_000

    @property
    def check_quorum_ms(self) -> int:
        """How long a leader goes without a majority; longer than a follower goes without a leader."""
        return self.fetch_ms * 3 // 2

    @property
    def announce_ms(self) -> int:
        """How often a leader makes itself known to voters that don't fetch."""
        return max(1, self.fetch_ms // 2)


class QuorumState:
    """The state, and nothing that decides. `jitter_ms(bound)` spreads elections; it comes from the random port."""

    def __init__(
        self,
        *,
        node_id: int,
        directory_id: Uuid,
        voters: VoterSet,
        kraft_version: int,
        state: ElectionState,
        log: LogView,
        jitter_ms: Callable[[int], int],
        timeouts: QuorumTimeouts | None = None,
        may_stand: bool = True,
        voters_offset: int = -1,
        former_voters: VoterSet | None = None,
    ) -> None:
        self.node_id = node_id
        self.directory_id = directory_id
        self.voters = voters
        self.kraft_version = kraft_version
        self.state = state
        self.role: Role = Unattached()
        self.high_watermark = 0
        self.timeouts = timeouts or QuorumTimeouts()
        self._log = log
        self._jitter_ms = jitter_ms
        self._may_stand = may_stand
        self._voters_offset = voters_offset
        self._former_voters = former_voters
        self._deadline_ms = 0

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def leader_id(self) -> int:
        return self.state.leader_id if isinstance(self.role, Leader | Follower) else NOBODY

    @property
    def leads(self) -> bool:
        return isinstance(self.role, Leader)

    @property
    def is_voter(self) -> bool:
        return self._may_stand and self.voters.includes(self.node_id, self.directory_id)

    @property
    def can_stand(self) -> bool:
        """Whether we may be elected: as a voter, or as one that was removed by a record which may yet be lost.

        Such a one may have the only log that is long enough (Raft's thesis, 4.2.2); its own vote does not count.
        """
        former = self._former_voters
        if self.is_voter or former is None or self._voters_offset < self.high_watermark:
            return self.is_voter
        return self._may_stand and former.includes(self.node_id, self.directory_id)

    def remember(self) -> tuple[ElectionState, Role, int, int]:
        """What a step may change before its first effect is carried out; for `go_back`."""
        return self.state, self.role, self.high_watermark, self._deadline_ms

    def go_back(self, before: tuple[ElectionState, Role, int, int]) -> None:
        """The state that a step wanted could not be written, and nobody has heard of it: it never was."""
        self.state, self.role, self.high_watermark, self._deadline_ms = before

    def _commit(self, offset: int) -> list[Effect]:
        if offset <= self.high_watermark:
            return []
        self.high_watermark = offset
        return [Commit(offset)]

    def _others(self) -> tuple[ReplicaKey, ...]:
        return tuple(ReplicaKey(voter.id, voter.directory_id) for voter in self.voters if voter.id != self.node_id)

    def _await_election(self, now_ms: int) -> Wake:
        jitter_ms = self._jitter_ms(max(1, self.timeouts.backoff_ms_max))
        return self._wake_at(now_ms + self.timeouts.election_ms + jitter_ms)

    def _await_opinions(self, now_ms: int) -> Wake:
        """To ask whether others would vote costs nothing: not as long as an election."""
        half_ms = max(1, self.timeouts.election_ms // 2)
        return self._wake_at(now_ms + half_ms + self._jitter_ms(half_ms))

    def _await_fetch(self, now_ms: int) -> Wake:
        # Followers hear from the leader for the last time together. Who misses it together splits the votes.
        jitter_ms = self._jitter_ms(max(1, self.timeouts.election_ms // 4))
        return self._wake_at(now_ms + self.timeouts.fetch_ms + jitter_ms)

    def _wake_at(self, at_ms: int) -> Wake:
        self._deadline_ms = at_ms
        return Wake(at_ms)
