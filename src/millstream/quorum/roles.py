r"""What a member of the quorum is at a time, and the soft state that goes with it.

    Unattached --timeout--> Prospective --majority would--> Candidate --majority did--> Leader --resigns--> Resigned
        ^ \-------------------- hears of a leader -------------------> Follower --timeout--> Prospective

An observer (a broker, or a controller that does not vote) is only ever Unattached or Follower.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from millstream.protocol.uuid import Uuid
    from millstream.quorum.voters import Voter, VoterSet

NEVER_MS = -1


class ReplicaKey(NamedTuple):
    """A replica: the node, and the directory that its log is in (zero where that is not known)."""

    id: int
    directory_id: Uuid


@dataclass(slots=True)
class Unattached:
    """Knows an epoch and follows nobody."""


@dataclass(slots=True)
class Ballot:
    """Answers by voter, so that one that is repeated counts once."""

    granted: dict[int, bool] = field(default_factory=dict)

    def grants(self, voters: VoterSet) -> tuple[int, ...]:
        return tuple(voter.id for voter in voters if self.granted.get(voter.id))

    def is_won(self, voters: VoterSet) -> bool:
        return len(self.grants(voters)) >= voters.majority

    def is_lost(self, voters: VoterSet) -> bool:
        """Whether those who have not answered could no longer make it a majority."""
        refusals = sum(self.granted.get(voter.id) is False for voter in voters)
        return len(voters) - refusals < voters.majority


@dataclass(slots=True)
class Prospective:
    """Asks whether others would vote for it, without changing anything yet (KIP-996)."""

    ballot: Ballot = field(default_factory=Ballot)


@dataclass(slots=True)
class Candidate:
    """Has raised the epoch, voted for itself, and asks for votes."""

    ballot: Ballot = field(default_factory=Ballot)


@dataclass(slots=True)
class Follower:
    """Fetches from the leader. `has_fetched` is whether the leader has answered in this role."""

    leader_id: int
    has_fetched: bool = False
    leader_high_watermark: int = 0


@dataclass(slots=True)
class Progress:
    """How far a replica is, as its fetches tell; times are the monotonic clock's.

    `heard_ms` is when it last showed that it follows: with a fetch, or by taking a piece of a snapshot.
    """

    end_offset: int = -1
    fetched_ms: int = NEVER_MS
    caught_up_ms: int = NEVER_MS
    leader_end_at_fetch: int = -1
    heard_ms: int = NEVER_MS


@dataclass(slots=True)
class Leader:
    """Leads the epoch that began with the record at `epoch_start`, since `since_ms`."""

    epoch_start: int
    since_ms: int = 0
    voters: dict[int, Progress] = field(default_factory=dict)
    observers: dict[ReplicaKey, Progress] = field(default_factory=dict)
    announced_ms: int = 0
    introduced: dict[int, Voter] = field(default_factory=dict)
    """What fixed voters have said of themselves (upgrade.py)."""


@dataclass(slots=True)
class Resigned:
    """Has led this epoch and no longer does: it neither leads nor votes in it again."""


Role = Unattached | Prospective | Candidate | Follower | Leader | Resigned
