"""What a metadata log is given, and whom it tells: settings, records to append, patience, and those who listen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from millstream.broker.metadata_batches import encode_values
from millstream.log.config import DAY_MS
from millstream.metadata.record_types import BeginTransactionRecord, EndTransactionRecord

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.broker.metadata_replay import ReplayedMetadata
    from millstream.metadata.record_types import MetadataRecord
    from millstream.quorum.events import Effect
    from millstream.runtime.ports import Clock

NO_ROOM_MS_MAX = 30_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLogConfig:
    """Kafka's metadata.log.* and metadata.max.* settings, with its defaults."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    record_bytes_between_snapshots_max: int = 20 << 20
    snapshot_interval_max_ms: int = 60 * 60 * 1000
    retention_bytes_max: int = 100 << 20
    retention_ms_max: int = 7 * DAY_MS


class FramedRecords(NamedTuple):
    """Records ready to be appended: `groups` holds their values, one list for each batch."""

    records: Sequence[MetadataRecord]
    groups: list[list[bytes]]


def frame(records: Sequence[MetadataRecord], level: int) -> FramedRecords:
    """Encode records for one atomic batch, or where they are too many for a metadata transaction of several."""
    groups = list(encode_values(records, level))
    if len(groups) > 1:
        records = [BeginTransactionRecord(), *records, EndTransactionRecord()]
        groups = list(encode_values(records, level))
    return FramedRecords(records, [values for values, _ in groups])


class Room:
    """For how long the disk has had no space for what the quorum's leader sends.

    Apache Kafka halts at the first write that fails. Here an administrator has a moment to make room.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._missing_since_ms: int | None = None

    def found(self) -> None:
        self._missing_since_ms = None

    def has_been_missing_for_long(self) -> bool:
        """Something did not fit just now."""
        now_ms = self._clock.monotonic_ms()
        if self._missing_since_ms is None:
            self._missing_since_ms = now_ms
        return now_ms - self._missing_since_ms >= NO_ROOM_MS_MAX


class Follower(Protocol):
    """Who wants to know what becomes of the log: the controller."""

    def committed(self, high_watermark: int) -> None: ...
    def leads(self) -> None: ...
    def stepped_down(self) -> None: ...
    def truncated(self, end_offset: int) -> None: ...
    def began_anew(self, replayed: ReplayedMetadata) -> None: ...
    def failed(self, error: BaseException) -> None: ...


class Outside(Protocol):
    """Where effects go that concern other nodes, and the clock."""

    def carry_out(self, effect: Effect) -> None: ...

    def log_changed(self) -> None:
        """Records were appended, or more of them are committed."""
