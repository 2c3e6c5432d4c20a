"""Places in the metadata log, and how two logs are found to agree or to part.

A replica says of itself where its log ends and in which epoch its last record was written. Two logs that have a record
of the same epoch at the same offset agree on everything before it, so this pair is enough to tell whether one is a
prefix of the other. Where it is not, the leader answers with the end of the largest epoch that both may share, and the
follower cuts its log there and asks again: each round gives up one epoch at least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol


class LogPosition(NamedTuple):
    """The offset behind a record, and the epoch of that record. (0, 0) is the beginning of everything."""

    offset: int
    epoch: int

    def is_as_new_as(self, other: LogPosition) -> bool:
        """Raft's rule for votes: the later epoch wins, then the longer log."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)


class LogView(Protocol):
    """What a quorum node reads of its log. It never writes: that is what effects are for."""

    @property
    def end(self) -> LogPosition:
        """Behind the last record, or behind the snapshot that an empty log begins with."""

    @property
    def start_offset(self) -> int: ...

    @property
    def latest_snapshot(self) -> LogPosition | None: ...

    @property
    def earliest_snapshot(self) -> LogPosition | None: ...

    def end_of_epoch(self, epoch: int) -> LogPosition:
        """The largest epoch up to `epoch` that the log knows, and where it ended."""


@dataclass(frozen=True, slots=True)
class Agrees:
    """The follower's log is a beginning of ours: it may read on."""


@dataclass(frozen=True, slots=True)
class Diverges:
    """The logs part: the follower's can agree with ours up to here at most."""

    at: LogPosition


@dataclass(frozen=True, slots=True)
class Behind:
    """What the follower needs is no longer in the log: it has to take this snapshot."""

    snapshot: LogPosition


Comparison = Agrees | Diverges | Behind


def compare(log: LogView, follower: LogPosition) -> Comparison:
    """Whether a follower that holds everything up to `follower` has a beginning of our log."""
    if log.start_offset == 0 and follower == (0, 0):
        return Agrees()
    snapshot = log.latest_snapshot
    if snapshot is not None and log.start_offset > 0:
        # Of the record before the start only the snapshot that ends there still knows the epoch.
        is_elsewhere = follower.offset == log.start_offset and follower != log.earliest_snapshot
        if follower.offset < log.start_offset or is_elsewhere:
            return Behind(snapshot)
    known = log.end_of_epoch(follower.epoch)
    if known.epoch != follower.epoch or known.offset < follower.offset:
        return Diverges(known)
    return Agrees()


def truncation_point(log: LogView, diverging: LogPosition) -> int:
    """Where to cut our log, told by the leader that it parts from its own at `diverging` at the latest."""
    known = log.end_of_epoch(diverging.epoch)
    return min(known.offset, diverging.offset) if known.epoch == diverging.epoch else known.offset
