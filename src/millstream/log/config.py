"""What one log is told about itself: the topic's settings that concern its files.

Frozen, so that a change of settings is a new object handed to `Log.reconfigure`; fields carry the names of Kafka's
topic settings, and its defaults. Settings that only the broker reads (min.insync.replicas and the like) stay with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from millstream.records.codecs import DEFAULT_LIMITS, Codec
from millstream.records.validation import Rules

if TYPE_CHECKING:
    from millstream.records.codecs import Limits

DAY_MS = 24 * 60 * 60 * 1000
FOREVER = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """One topic's settings as its logs read them."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * DAY_MS
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096

    flush_messages: int = FOREVER
    flush_ms: int = FOREVER

    retention_ms: int = 7 * DAY_MS
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000

    delete: bool = True
    compact: bool = False
    delete_retention_ms: int = DAY_MS
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    min_cleanable_dirty_ratio: float = 0.5

    max_message_bytes: int = 1_048_588
    compression_type: str = "producer"
    compression_level: int | None = None
    log_append_time: bool = False
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_after_max_ms: int = 60 * 60 * 1000

    producer_id_expiration_ms: int = DAY_MS
    validate_records: bool = True
    decompression_limits: Limits = DEFAULT_LIMITS
    records_per_batch_max: int = 1_000_000

    @property
    def rolled_after_ms(self) -> int:
        """How long a segment grows. Only closed ones are compacted, so `max.compaction.lag.ms` counts here, too."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compact else self.segment_ms

    @lru_cache(maxsize=1024)  # noqa: B019  # shared by all logs that are set alike, and few at a time
    def rules(self) -> Rules:
        """What the topic asks of a producer's batch."""
        return Rules(
            batch_bytes_max=self.max_message_bytes,
            compacted=self.compact,
            log_append_time=self.log_append_time,
            timestamp_before_max_ms=self.message_timestamp_before_max_ms,
            timestamp_after_max_ms=self.message_timestamp_after_max_ms,
            walk_records=self.validate_records,
            records_max=self.records_per_batch_max,
            limits=self.decompression_limits,
        )

    def codec(self) -> Codec | None:
        """The codec that batches are stored in; None leaves it to the producer."""
        if self.compression_type == "producer":
            return None
        return Codec.NONE if self.compression_type == "uncompressed" else Codec[self.compression_type.upper()]
