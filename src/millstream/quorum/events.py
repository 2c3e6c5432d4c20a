"""What happens to a quorum node, and what it wants done.

The driver feeds events into `QuorumNode.step` and carries out the effects in order. An effect that writes must be
durable before the next one is carried out: that is the whole contract between the pure node and its disk. Requests of
others are events as well; their answer is among the effects, behind what has to be on disk before it may leave.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from millstream.protocol.error_codes import ErrorCode

if TYPE_CHECKING:
    from millstream.quorum.election_state import ElectionState
    from millstream.quorum.positions import LogPosition
    from millstream.quorum.roles import ReplicaKey
    from millstream.quorum.voters import Voter, VoterSet


@dataclass(frozen=True, slots=True)
class Started:
    """The log was read and the node comes up."""


@dataclass(frozen=True, slots=True)
class Woken:
    """The moment has come that the last `Wake` named."""


@dataclass(frozen=True, slots=True)
class Stopping:
    """The node goes down: a leader hands over."""


@dataclass(frozen=True, slots=True)
class EpochSeen:
    """A peer spoke with this epoch and named its leader (or nobody)."""

    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class VoteRequested:
    """A candidate asks for our vote; before it becomes one, whether it would get it (`pre_vote`)."""

    candidate: ReplicaKey
    epoch: int
    end: LogPosition
    pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class VoteAnswered:
    """A voter's answer to the question that we asked in `epoch`."""

    voter_id: int
    epoch: int
    granted: bool
    pre_vote: bool = False


@dataclass(frozen=True, slots=True)
class LeaderAnnounced:
    """The leader of an epoch makes itself known (BeginQuorumEpoch)."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class LeaderRetired:
    """A leader gives up its epoch (EndQuorumEpoch), with those whom it wants to follow it, the best first."""

    leader_id: int
    epoch: int
    successors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class FetchRequested:
    """A replica wants what comes after `end`: it holds everything before, durably.

    `is_new` is whether it says so now. One that has waited for an answer, and is looked at again, is no sign of life.
    """

    replica: ReplicaKey
    epoch: int
    end: LogPosition
    is_new: bool = True


@dataclass(frozen=True, slots=True)
class PieceRequested:
    """A replica takes a piece of a snapshot from us, in `epoch` (FetchSnapshot)."""

    replica: ReplicaKey
    epoch: int


@dataclass(frozen=True, slots=True)
class FetchAnswered:
    """What the leader of `epoch` sent us. `records` is nothing that the node would look into."""

    leader_id: int
    epoch: int
    high_watermark: int = -1
    records: Any = None
    diverging: LogPosition | None = None
    snapshot: LogPosition | None = None


@dataclass(frozen=True, slots=True)
class LeaderLost:
    """The connection to the leader broke and cannot be made again: sooner known than by waiting for a timeout."""

    leader_id: int
    epoch: int


@dataclass(frozen=True, slots=True)
class SnapshotLoaded:
    """The log begins anew behind a snapshot of the leader's."""

    at: LogPosition


@dataclass(frozen=True, slots=True)
class Flushed:
    """Our own log is durable up to `end_offset` (exclusive)."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class VotersChanged:
    """A VotersRecord was appended or cut off: what the last one, at `offset`, says counts from now on, committed or
    not. `former` are the voters before it."""

    voters: VoterSet
    kraft_version: int
    offset: int = -1
    former: VoterSet | None = None


@dataclass(frozen=True, slots=True)
class VoterIntroduced:
    """A voter tells the leader of `epoch` its directory, its addresses and the levels that it knows."""

    voter: Voter
    epoch: int


Event = (
    Started | Woken | Stopping | EpochSeen | VoteRequested | VoteAnswered | LeaderAnnounced | LeaderRetired
    | FetchRequested | PieceRequested | FetchAnswered | LeaderLost | SnapshotLoaded | Flushed | VotersChanged
    | VoterIntroduced
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Persist:
    """Write the election state durably."""

    state: ElectionState


@dataclass(frozen=True, slots=True)
class Wake:
    """Say `Woken` at this moment unless another Wake comes first."""

    at_ms: int


@dataclass(frozen=True, slots=True)
class RequestVotes:
    """Ask the other voters for their votes, or whether they would give them."""

    epoch: int
    voters: tuple[ReplicaKey, ...]
    end: LogPosition
    pre_vote: bool


@dataclass(frozen=True, slots=True)
class Lead:
    """We lead `epoch`: append the leader-change record as the epoch's first, and accept appends after it."""

    epoch: int
    voter_ids: tuple[int, ...]
    granting_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Announce:
    """Tell these voters that we lead `epoch`."""

    epoch: int
    voters: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class StepDown:
    """We no longer lead: appends are refused, and who waits for a commit is told."""


@dataclass(frozen=True, slots=True)
class Retire:
    """Tell the other voters that we gave up `epoch`, in this order of preference."""

    epoch: int
    voters: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class Follow:
    """Fetch from the leader of `epoch`, again and again."""

    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class Discover:
    """Nobody is known to lead: ask around, again and again."""


@dataclass(frozen=True, slots=True)
class Truncate:
    """Cut the log off at `offset`: what is behind it was never committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class Append:
    """Write what the leader sent."""

    records: Any


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """Fetch this snapshot from the leader and begin the log behind it."""

    snapshot: LogPosition


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything before `high_watermark` is committed."""

    high_watermark: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request; who leads which epoch is for the driver to add, as it is now."""

    error: ErrorCode = ErrorCode.NONE
    granted: bool = False


@dataclass(frozen=True, slots=True)
class AnswerFetch:
    """The answer to a fetch: an error, where the logs part, a snapshot to take, or (None of these) records."""

    error: ErrorCode = ErrorCode.NONE
    diverging: LogPosition | None = None
    snapshot: LogPosition | None = None


Effect = (
    Persist | Wake | RequestVotes | Lead | Announce | StepDown | Retire | Follow | Discover | Truncate | Append
    | LoadSnapshot | Commit | Answer | AnswerFetch
)  # fmt: skip
