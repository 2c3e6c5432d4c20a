"""The rules of a partition's follower: from an answer of its leader to what has to happen to its log.

PURE: `Position` is what a fetch asks for, `after_fetch` and `after_offsets` turn answers into effects, which the
fetcher (broker/replica_fetchers.py) carries out in order.

The rules are those of KIP-320, the only form of the protocol that a model checker has passed:

- A follower never cuts its log by its own high watermark (KIP-101): it sends the epoch of its last record along with
  its end, and the leader says where the two histories part (`diverging_epoch`). What the follower knows of that epoch
  and what the leader knows give the offset to cut at (KIP-279); if it does not know the epoch at all, it cuts back to
  the epoch before and asks again.
- An answer counts only for the leader epoch in which it was asked for, and only if the log still ends where it did,
  with the same last epoch: it may have been cut and have grown to the same length again.
- An answer that tells of a divergence moves nothing but the end: its high watermark speaks of records that this
  follower does not have yet (KAFKA-14704).
- The high watermark is the leader's, as far as this log reaches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from millstream.protocol.errors import ErrorCode
from millstream.replication.leader import check_epoch

if TYPE_CHECKING:
    from millstream.protocol.messages.fetch import PartitionData

UNDEFINED = -1


class FollowedLog(Protocol):
    """What the rules have to know of the log."""

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def high_watermark(self) -> int: ...
    @property
    def latest_epoch(self) -> int:
        """Of the last leader that is known to have begun; -1 if none is."""

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch`, and where it ended; (-1, -1) if that is not known."""


class Position(NamedTuple):
    """Where the next fetch begins."""

    leader_epoch: int
    offset: int
    last_fetched_epoch: int


@dataclass(frozen=True, slots=True)
class Truncate:
    """Drop what is at `offset` and above, and the epochs that began there."""

    offset: int


@dataclass(frozen=True, slots=True)
class StartAnew:
    """Drop everything; the leader's log begins at `offset`, behind all that is here."""

    offset: int


@dataclass(frozen=True, slots=True)
class Append:
    """Append the batches as they came."""

    records: bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class AdvanceHighWatermark:
    """Everything below `offset`, as far as it is here, is committed."""

    offset: int


@dataclass(frozen=True, slots=True)
class AdvanceStart:
    """The leader's log begins at `offset` now; so shall ours, as far as it is committed here."""

    offset: int


@dataclass(frozen=True, slots=True)
class AskForOffsets:
    """Our end is not within the leader's log: find out where that begins and ends."""


@dataclass(frozen=True, slots=True)
class TryAgainLater:
    """The leader cannot serve us at the moment; one of the two brokers has older metadata than the other."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class AwaitMetadata:
    """We are fenced: nothing can come of asking in this epoch again."""


Effect = (
    Truncate | StartAnew | Append | AdvanceHighWatermark | AdvanceStart | AskForOffsets | TryAgainLater | AwaitMetadata
)


class PartitionFollower:
    """One follower in one epoch of its leader. A new epoch gets a new object."""

    __slots__ = ("epoch", "leader_id")

    def __init__(self, leader_id: int, epoch: int) -> None:
        self.leader_id = leader_id
        self.epoch = epoch

    def check_epoch(self, current_leader_epoch: int) -> None:
        """Refuse a reader whose idea of the leader's epoch is older, or newer, than ours."""
        check_epoch(self.epoch, current_leader_epoch)

    def position(self, log: FollowedLog) -> Position:
        return Position(self.epoch, log.end_offset, log.latest_epoch)

    def after_fetch(self, asked: Position, answer: PartitionData, log: FollowedLog) -> tuple[Effect, ...]:
        """What the answer to a fetch from `asked` calls for."""
        if asked != self.position(log):
            return ()  # the answer to a question that is no longer ours
        if answer.error_code != ErrorCode.NONE:
            return (self._refused(ErrorCode(answer.error_code)),)
        if answer.diverging_epoch.epoch != UNDEFINED:
            return (Truncate(truncation_offset(answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset, log)),)
        effects: list[Effect] = []
        if answer.records:
            effects.append(Append(answer.records))
        if answer.high_watermark > log.high_watermark:
            effects.append(AdvanceHighWatermark(answer.high_watermark))
        if answer.log_start_offset > log.start_offset:
            effects.append(AdvanceStart(answer.log_start_offset))
        return tuple(effects)

    def _refused(self, error: ErrorCode) -> Effect:
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            return AskForOffsets()
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            return AwaitMetadata()
        return TryAgainLater(error)

    def after_offsets(
        self, asked: Position, leader_start: int, leader_end: int, log: FollowedLog
    ) -> tuple[Effect, ...]:
        """The leader told where its log begins and ends, after it had refused our offset."""
        if asked != self.position(log):
            return ()
        if leader_end < log.end_offset:
            # Only an unclean election can make a leader of one who has less than we have in the same epochs.
            return (Truncate(leader_end),)
        if leader_start > log.end_offset:
            return (StartAnew(leader_start),)
        return ()


def truncation_offset(leader_epoch: int, leader_end: int, log: FollowedLog) -> int:
    """Where to cut, if the leader's largest epoch up to our last one is `leader_epoch`, and ended at `leader_end`."""
    own_epoch, own_end = log.end_offset_for_epoch(leader_epoch)
    if own_epoch == UNDEFINED:
        return min(leader_end, log.end_offset)
    if own_epoch != leader_epoch:
        # We have nothing of that epoch: go back behind it, and ask with the epoch that is our last one then.
        return min(own_end, log.end_offset)
    return min(own_end, leader_end, log.end_offset)
