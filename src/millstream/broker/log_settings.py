"""A topic's effective settings, as its logs want them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from millstream.log.config import LogConfig
from millstream.records.codecs import Limits
from millstream.settings import (
    CLEANUP_POLICY,
    COMPRESSION_GZIP_LEVEL,
    COMPRESSION_LZ4_LEVEL,
    COMPRESSION_TYPE,
    COMPRESSION_ZSTD_LEVEL,
    DELETE_RETENTION_MS,
    FILE_DELETE_DELAY_MS,
    FLUSH_MESSAGES,
    FLUSH_MS,
    INDEX_INTERVAL_BYTES,
    INTERNAL_SEGMENT_BYTES,
    MAX_COMPACTION_LAG_MS,
    MAX_MESSAGE_BYTES,
    MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    MESSAGE_TIMESTAMP_TYPE,
    MILLSTREAM_BATCH_COMPRESSION_RATIO_MAX,
    MILLSTREAM_BATCH_DECOMPRESSED_BYTES_MAX,
    MILLSTREAM_BATCH_RECORDS_MAX,
    MILLSTREAM_RECORD_VALIDATION,
    MIN_CLEANABLE_DIRTY_RATIO,
    MIN_COMPACTION_LAG_MS,
    PRODUCER_ID_EXPIRATION_MS,
    RETENTION_BYTES,
    RETENTION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
    SEGMENT_JITTER_MS,
    SEGMENT_MS,
)

if TYPE_CHECKING:
    from millstream.settings import Settings

_LEVELS = {"gzip": COMPRESSION_GZIP_LEVEL, "lz4": COMPRESSION_LZ4_LEVEL, "zstd": COMPRESSION_ZSTD_LEVEL}


def log_config(settings: Settings) -> LogConfig:
    """What `settings`, with the topic's own in it, mean for its logs."""
    policies = settings[CLEANUP_POLICY]
    compression = settings[COMPRESSION_TYPE]
    level = _LEVELS.get(compression)
    config = LogConfig(
        segment_bytes=settings[INTERNAL_SEGMENT_BYTES] or settings[SEGMENT_BYTES],
        segment_ms=settings[SEGMENT_MS],
        segment_jitter_ms=settings[SEGMENT_JITTER_MS],
        segment_index_bytes=settings[SEGMENT_INDEX_BYTES],
        index_interval_bytes=settings[INDEX_INTERVAL_BYTES],
        flush_messages=settings[FLUSH_MESSAGES],
        flush_ms=settings[FLUSH_MS],
        retention_ms=settings[RETENTION_MS],
        retention_bytes=settings[RETENTION_BYTES],
        file_delete_delay_ms=settings[FILE_DELETE_DELAY_MS],
        delete="delete" in policies,
        compact="compact" in policies,
        delete_retention_ms=settings[DELETE_RETENTION_MS],
        min_compaction_lag_ms=settings[MIN_COMPACTION_LAG_MS],
        max_compaction_lag_ms=settings[MAX_COMPACTION_LAG_MS],
        min_cleanable_dirty_ratio=settings[MIN_CLEANABLE_DIRTY_RATIO],
        max_message_bytes=settings[MAX_MESSAGE_BYTES],
        compression_type=compression,
        compression_level=None if level is None else settings[level],
        log_append_time=settings[MESSAGE_TIMESTAMP_TYPE] == "LogAppendTime",
        message_timestamp_before_max_ms=settings[MESSAGE_TIMESTAMP_BEFORE_MAX_MS],
        message_timestamp_after_max_ms=settings[MESSAGE_TIMESTAMP_AFTER_MAX_MS],
        producer_id_expiration_ms=settings[PRODUCER_ID_EXPIRATION_MS],
        validate_records=settings[MILLSTREAM_RECORD_VALIDATION] == "full",
        decompression_limits=Limits(
            bytes_max=settings[MILLSTREAM_BATCH_DECOMPRESSED_BYTES_MAX],
            ratio_max=settings[MILLSTREAM_BATCH_COMPRESSION_RATIO_MAX],
        ),
        records_per_batch_max=settings[MILLSTREAM_BATCH_RECORDS_MAX],
    )
    return _shared(config)


@lru_cache(maxsize=1024)
def _shared(config: LogConfig) -> LogConfig:
    """One object for all topics that are set alike: thousands of partitions of a kind need not hold one each."""
    return config
