"""What happens to a quorum node, and what it wants done.

The driver feeds events into `QuorumNode.step` and carries out the effects in order. An effect that writes must be
durable before the next one is carried out: that is the whole contract between the pure node and its disk.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.protocol.uuid import Uuid
    from millstream.quorum.election_state import ElectionState
    from millstream.quorum.voters import VoterSet


@dataclass(frozen=True, slots=True)
class Started:
    """The log was read: it ends before `end_offset`, and its last record was written in `last_epoch`."""

    end_offset: int
    last_epoch: int


@dataclass(frozen=True, slots=True)
class ElectionTimedOut:
    """No leader was heard of, or too few votes came, until the deadline that `AwaitElection` set."""


@dataclass(frozen=True, slots=True)
class VoteAnswered:
    """A voter's answer to our request for its vote."""

    voter_id: int
    epoch: int
    granted: bool


@dataclass(frozen=True, slots=True)
class Flushed:
    """Our own log is durable up to `end_offset` (exclusive)."""

    end_offset: int


@dataclass(frozen=True, slots=True)
class VoterFetched:
    """Another voter fetched from `end_offset`: it holds everything before, in this epoch."""

    voter_id: int
    directory_id: Uuid
    end_offset: int


@dataclass(frozen=True, slots=True)
class EpochSeen:
    """A peer spoke with this epoch and named its leader (or nobody)."""

    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class VotersChanged:
    """A VotersRecord was appended: it counts from now on, committed or not (KIP-853)."""

    voters: VoterSet
    kraft_version: int


Event = Started | ElectionTimedOut | VoteAnswered | Flushed | VoterFetched | EpochSeen | VotersChanged


@dataclass(frozen=True, slots=True)
class Persist:
    """Write the election state durably."""

    state: ElectionState


@dataclass(frozen=True, slots=True)
class RequestVotes:
    """Ask the other voters for their votes."""

    epoch: int
    voter_ids: tuple[int, ...]
    last_offset: int
    last_epoch: int


@dataclass(frozen=True, slots=True)
class AwaitElection:
    """Raise ElectionTimedOut at this moment unless another AwaitElection comes first."""

    deadline_ms: int


@dataclass(frozen=True, slots=True)
class Lead:
    """We lead `epoch`: append the leader-change record as the epoch's first, and accept appends after it."""

    epoch: int
    voter_ids: tuple[int, ...]
    granting_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Follow:
    """Another node leads: fetch from it. Appends are refused from here on."""

    epoch: int
    leader_id: int


@dataclass(frozen=True, slots=True)
class Commit:
    """Everything before `high_watermark` is committed."""

    high_watermark: int


Effect = Persist | RequestVotes | AwaitElection | Lead | Follow | Commit
