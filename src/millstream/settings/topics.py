"""The settings of a topic, with the broker-wide ones that give each its default.

`topic_settings` (effective.py) resolves them for one topic; DescribeConfigs shows the chain.
"""

from __future__ import annotations

from millstream.settings import rules
from millstream.settings.cleaning import (
    BROKER_COMPRESSION_GZIP_LEVEL,
    BROKER_COMPRESSION_LZ4_LEVEL,
    BROKER_COMPRESSION_TYPE,
    BROKER_COMPRESSION_ZSTD_LEVEL,
    LOG_CLEANER_DELETE_RETENTION_MS,
    LOG_CLEANER_MAX_COMPACTION_LAG_MS,
    LOG_CLEANER_MIN_CLEANABLE_RATIO,
    LOG_CLEANER_MIN_COMPACTION_LAG_MS,
)
from millstream.settings.declare import IfIgnored, Scope, Setting, Times
from millstream.settings.kinds import (
    BOOLEAN,
    DAY_MS,
    DOUBLE,
    GIB,
    HOUR_MS,
    INT,
    LIST,
    LONG,
    LONG_MAX,
    MIB,
    MINUTE_MS,
    STRING,
)
from millstream.settings.replication import BROKER_MIN_INSYNC_REPLICAS, BROKER_UNCLEAN_LEADER_ELECTION_ENABLE
from millstream.settings.storage import (
    LOG_CLEANUP_POLICY,
    LOG_FLUSH_INTERVAL_MESSAGES,
    LOG_FLUSH_INTERVAL_MS,
    LOG_FLUSH_SCHEDULER_INTERVAL_MS,
    LOG_INDEX_INTERVAL_BYTES,
    LOG_INDEX_SIZE_MAX_BYTES,
    LOG_LOCAL_RETENTION_BYTES,
    LOG_LOCAL_RETENTION_MS,
    LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,
    LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,
    LOG_MESSAGE_TIMESTAMP_TYPE,
    LOG_PREALLOCATE,
    LOG_RETENTION_BYTES,
    LOG_RETENTION_HOURS,
    LOG_RETENTION_MINUTES,
    LOG_RETENTION_MS,
    LOG_ROLL_HOURS,
    LOG_ROLL_JITTER_HOURS,
    LOG_ROLL_JITTER_MS,
    LOG_ROLL_MS,
    LOG_SEGMENT_BYTES,
    LOG_SEGMENT_DELETE_DELAY_MS,
    MESSAGE_MAX_BYTES,
)

CLEANUP_POLICY = Setting(
    "cleanup.policy",
    LIST,
    default=("delete",),
    scope=Scope.TOPIC,
    one_of=("compact", "delete"),
    synonyms=(LOG_CLEANUP_POLICY,),
    doc="What happens to old segments: they are deleted, compacted, or both; nothing if empty.",
)
COMPRESSION_TYPE = Setting(
    "compression.type",
    STRING,
    default="producer",
    scope=Scope.TOPIC,
    one_of=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    synonyms=(BROKER_COMPRESSION_TYPE,),
    doc="How batches are stored: as the producer sent them, or compressed anew.",
)
COMPRESSION_GZIP_LEVEL = Setting(
    "compression.gzip.level",
    INT,
    default=-1,
    scope=Scope.TOPIC,
    check=rules.gzip_level,
    synonyms=(BROKER_COMPRESSION_GZIP_LEVEL,),
    doc="The gzip level where the broker compresses.",
)
COMPRESSION_LZ4_LEVEL = Setting(
    "compression.lz4.level",
    INT,
    default=9,
    scope=Scope.TOPIC,
    at_least=1,
    at_most=17,
    synonyms=(BROKER_COMPRESSION_LZ4_LEVEL,),
    doc="The lz4 level where the broker compresses.",
)
COMPRESSION_ZSTD_LEVEL = Setting(
    "compression.zstd.level",
    INT,
    default=3,
    scope=Scope.TOPIC,
    at_least=-131_072,
    at_most=22,
    synonyms=(BROKER_COMPRESSION_ZSTD_LEVEL,),
    doc="The zstd level where the broker compresses.",
)
DELETE_RETENTION_MS = Setting(
    "delete.retention.ms",
    LONG,
    default=DAY_MS,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(LOG_CLEANER_DELETE_RETENTION_MS,),
    simulate=(0, DAY_MS),
    doc="How long a tombstone stays in a compacted topic.",
)
FILE_DELETE_DELAY_MS = Setting(
    "file.delete.delay.ms",
    LONG,
    default=MINUTE_MS,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(LOG_SEGMENT_DELETE_DELAY_MS,),
    simulate=(0, MINUTE_MS),
    doc="How long a deleted segment stays on disk under another name.",
)
FLUSH_MESSAGES = Setting(
    "flush.messages",
    LONG,
    default=LONG_MAX,
    scope=Scope.TOPIC,
    at_least=1,
    synonyms=(LOG_FLUSH_INTERVAL_MESSAGES,),
    simulate=(1, LONG_MAX),
    doc="After so many records a partition is flushed to disk.",
)
FLUSH_MS = Setting(
    "flush.ms",
    LONG,
    default=LONG_MAX,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(LOG_FLUSH_INTERVAL_MS, LOG_FLUSH_SCHEDULER_INTERVAL_MS),
    doc="After so long a record is flushed to disk.",
)
INDEX_INTERVAL_BYTES = Setting(
    "index.interval.bytes",
    INT,
    default=4_096,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(LOG_INDEX_INTERVAL_BYTES,),
    simulate=(0, 4_096),
    doc="How many bytes of log lie between two entries of an index.",
)
MAX_COMPACTION_LAG_MS = Setting(
    "max.compaction.lag.ms",
    LONG,
    default=LONG_MAX,
    scope=Scope.TOPIC,
    at_least=1,
    synonyms=(LOG_CLEANER_MAX_COMPACTION_LAG_MS,),
    doc="A record older than this is compacted even if little has changed.",
)
MAX_MESSAGE_BYTES = Setting(
    "max.message.bytes",
    INT,
    default=MIB + 12,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(MESSAGE_MAX_BYTES,),
    doc="The largest record batch.",
)
MESSAGE_TIMESTAMP_TYPE = Setting(
    "message.timestamp.type",
    STRING,
    default="CreateTime",
    scope=Scope.TOPIC,
    one_of=("CreateTime", "LogAppendTime"),
    synonyms=(LOG_MESSAGE_TIMESTAMP_TYPE,),
    simulate=("CreateTime", "LogAppendTime"),
    doc="Whether a record keeps the producer's time or gets the broker's.",
)
MESSAGE_TIMESTAMP_BEFORE_MAX_MS = Setting(
    "message.timestamp.before.max.ms",
    LONG,
    default=LONG_MAX,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS,),
    doc="How far a record's time may lie behind the broker's.",
)
MESSAGE_TIMESTAMP_AFTER_MAX_MS = Setting(
    "message.timestamp.after.max.ms",
    LONG,
    default=HOUR_MS,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS,),
    doc="How far a record's time may lie ahead of the broker's.",
)
MIN_CLEANABLE_DIRTY_RATIO = Setting(
    "min.cleanable.dirty.ratio",
    DOUBLE,
    default=0.5,
    scope=Scope.TOPIC,
    at_least=0,
    at_most=1,
    synonyms=(LOG_CLEANER_MIN_CLEANABLE_RATIO,),
    simulate=(0.0, 0.5),
    doc="The share of a log that must be new before it is compacted.",
)
MIN_COMPACTION_LAG_MS = Setting(
    "min.compaction.lag.ms",
    LONG,
    default=0,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(LOG_CLEANER_MIN_COMPACTION_LAG_MS,),
    doc="A record younger than this is not compacted.",
)
MIN_INSYNC_REPLICAS = Setting(
    "min.insync.replicas",
    INT,
    default=1,
    scope=Scope.TOPIC,
    at_least=1,
    synonyms=(BROKER_MIN_INSYNC_REPLICAS,),
    doc="How many replicas must have a record before acks=all is answered.",
)
PREALLOCATE = Setting(
    "preallocate",
    BOOLEAN,
    default=False,
    scope=Scope.TOPIC,
    synonyms=(LOG_PREALLOCATE,),
    implemented=False,
    doc="Whether a new segment's file is made at its full size.",
)
RETENTION_BYTES = Setting(
    "retention.bytes",
    LONG,
    default=-1,
    scope=Scope.TOPIC,
    synonyms=(LOG_RETENTION_BYTES,),
    simulate=(-1, 100_000),
    doc="The size beyond which a partition loses its oldest segments; -1 for no limit.",
)
RETENTION_MS = Setting(
    "retention.ms",
    LONG,
    default=7 * DAY_MS,
    scope=Scope.TOPIC,
    at_least=-1,
    synonyms=(LOG_RETENTION_MS, Times(LOG_RETENTION_MINUTES, MINUTE_MS), Times(LOG_RETENTION_HOURS, HOUR_MS)),
    simulate=(1_000, 7 * DAY_MS),
    doc="How long a closed segment is kept. -1 keeps it forever.",
)
SEGMENT_BYTES = Setting(
    "segment.bytes",
    INT,
    default=GIB,
    scope=Scope.TOPIC,
    at_least=MIB,
    synonyms=(LOG_SEGMENT_BYTES,),
    simulate=(MIB, GIB),
    doc="The size at which a segment is closed.",
)
INTERNAL_SEGMENT_BYTES = Setting(
    "internal.segment.bytes",
    INT.optional,
    default=None,
    scope=Scope.TOPIC,
    internal=True,
    simulate=(1_024, 65_536),
    doc="A segment size below the usual bound, for tests.",
)
SEGMENT_INDEX_BYTES = Setting(
    "segment.index.bytes",
    INT,
    default=10 * MIB,
    scope=Scope.TOPIC,
    at_least=4,
    synonyms=(LOG_INDEX_SIZE_MAX_BYTES,),
    simulate=(64, 10 * MIB),
    doc="The largest index of a segment.",
)
SEGMENT_JITTER_MS = Setting(
    "segment.jitter.ms",
    LONG,
    default=0,
    scope=Scope.TOPIC,
    at_least=0,
    synonyms=(LOG_ROLL_JITTER_MS, Times(LOG_ROLL_JITTER_HOURS, HOUR_MS)),
    doc="The most that is randomly taken off segment.ms, so that topics do not roll together.",
)
SEGMENT_MS = Setting(
    "segment.ms",
    LONG,
    default=7 * DAY_MS,
    scope=Scope.TOPIC,
    at_least=1,
    synonyms=(LOG_ROLL_MS, Times(LOG_ROLL_HOURS, HOUR_MS)),
    simulate=(1_000, 7 * DAY_MS),
    doc="The age at which a segment is closed.",
)
UNCLEAN_LEADER_ELECTION_ENABLE = Setting(
    "unclean.leader.election.enable",
    BOOLEAN,
    default=False,
    scope=Scope.TOPIC,
    synonyms=(BROKER_UNCLEAN_LEADER_ELECTION_ENABLE,),
    doc="Whether a replica that may have missed records can become leader when no other is left.",
)
LEADER_REPLICATION_THROTTLED_REPLICAS = Setting(
    "leader.replication.throttled.replicas",
    LIST,
    default=(),
    scope=Scope.TOPIC,
    check=rules.throttled_replicas,
    doc="Replicas whose leader's side is throttled, as partition:broker, or *.",
)
FOLLOWER_REPLICATION_THROTTLED_REPLICAS = Setting(
    "follower.replication.throttled.replicas",
    LIST,
    default=(),
    scope=Scope.TOPIC,
    check=rules.throttled_replicas,
    doc="Replicas whose follower's side is throttled, as partition:broker, or *.",
)
REMOTE_STORAGE_ENABLE = Setting(
    "remote.storage.enable",
    BOOLEAN,
    default=False,
    scope=Scope.TOPIC,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="Whether closed segments also go to remote storage.",
)
LOCAL_RETENTION_BYTES = Setting(
    "local.retention.bytes",
    LONG,
    default=-2,
    scope=Scope.TOPIC,
    at_least=-2,
    synonyms=(LOG_LOCAL_RETENTION_BYTES,),
    implemented=False,
    doc="How much data that is also in remote storage stays local; -2 for retention.bytes.",
)
LOCAL_RETENTION_MS = Setting(
    "local.retention.ms",
    LONG,
    default=-2,
    scope=Scope.TOPIC,
    at_least=-2,
    synonyms=(LOG_LOCAL_RETENTION_MS,),
    implemented=False,
    doc="How long data that is also in remote storage stays local; -2 for retention.ms.",
)
REMOTE_LOG_COPY_DISABLE = Setting(
    "remote.log.copy.disable",
    BOOLEAN,
    default=False,
    scope=Scope.TOPIC,
    implemented=False,
    doc="Whether copying to remote storage stops while what is there stays readable.",
)
REMOTE_LOG_DELETE_ON_DISABLE = Setting(
    "remote.log.delete.on.disable",
    BOOLEAN,
    default=False,
    scope=Scope.TOPIC,
    implemented=False,
    doc="Whether turning remote storage off deletes what is there.",
)
