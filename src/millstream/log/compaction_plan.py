"""What the broker tells a compaction's child process, and what it hears back: two small JSON files in the folder.

The broker decides alone what may be cleaned, since only it knows the high watermark, the producers and the open
transactions; the child sees nothing but closed segments. The names of the two files mean nothing to Kafka or to a start
of ours, so one that a crash left behind does no harm; the next compaction writes over it.
"""

from __future__ import annotations

import msgspec

from millstream.log.transactions import AbortedTransaction  # noqa: TC001  # msgspec reads the annotations

PLAN_FILE = "compaction-plan.json"
RESULT_FILE = "compaction-result.json"


class PlannedSegment(msgspec.Struct, frozen=True):
    """A closed segment as it was when the plan was made."""

    base_offset: int
    size: int
    after: int
    """Where the next segment begins."""
    index_bytes: int


class LastOfProducer(msgspec.Struct, frozen=True):
    """What must be kept of a producer that is still active: its last batch, or the marker with its epoch."""

    producer_id: int
    epoch: int
    last_offset: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One compaction of one log."""

    directory: str
    now_ms: int
    first_dirty_offset: int
    upper_bound_offset: int
    """Where the first segment begins that stays as it is: nothing at or above it is read."""
    segments: list[PlannedSegment]
    """All below the upper bound, clean ones too."""
    producers: list[LastOfProducer]
    aborted: list[AbortedTransaction]
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    keys_max: int


class CleanedSegment(msgspec.Struct, frozen=True):
    """A segment that stands ready under `.cleaned` to take the place of others."""

    base_offset: int
    size: int
    replaces: list[int]
    """Base offsets of the segments whose records it holds, ascending."""
    has_txn_index: bool


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What the child made."""

    cleaned: list[CleanedSegment]
    end_offset: int
    """Up to here the log is clean once the segments are in place."""
    opaque_batches: int
    """Batches whose inside is not what their header says; they were kept as they are."""
    damage: str | None = None
    """Why a segment could not even be walked; then nothing was made, and the partition is not to be cleaned again."""
