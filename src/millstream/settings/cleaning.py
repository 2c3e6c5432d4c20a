"""The cleaner, which compacts logs, and the compression of what the broker writes itself: broker-wide."""

from __future__ import annotations

from millstream.settings import rules
from millstream.settings.declare import Importance, Live, Setting
from millstream.settings.kinds import BOOLEAN, DAY_MS, DOUBLE, DOUBLE_MAX, INT, KIB, LONG, LONG_MAX, MIB, STRING

LOG_CLEANER_ENABLE = Setting("log.cleaner.enable", BOOLEAN, default=True, doc="Whether compaction runs at all.")
LOG_CLEANER_THREADS = Setting(
    "log.cleaner.threads",
    INT,
    default=1,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    implemented=False,
    doc="How many partitions are compacted at the same time.",
)
LOG_CLEANER_BACKOFF_MS = Setting(
    "log.cleaner.backoff.ms",
    LONG,
    default=15_000,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    doc="How long the cleaner rests when there is nothing to do.",
)
LOG_CLEANER_DEDUPE_BUFFER_SIZE = Setting(
    "log.cleaner.dedupe.buffer.size",
    LONG,
    default=128 * MIB,
    live=Live.CLUSTER_WIDE,
    doc="The memory for the keys of one round of compaction.",
)
LOG_CLEANER_IO_BUFFER_LOAD_FACTOR = Setting(
    "log.cleaner.io.buffer.load.factor",
    DOUBLE,
    default=0.9,
    live=Live.CLUSTER_WIDE,
    implemented=False,
    doc="How full Apache Kafka's key map may get.",
)
LOG_CLEANER_IO_BUFFER_SIZE = Setting(
    "log.cleaner.io.buffer.size",
    INT,
    default=512 * KIB,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    implemented=False,
    doc="The memory of Apache Kafka's cleaner for reading and writing.",
)
LOG_CLEANER_IO_MAX_BYTES_PER_SECOND = Setting(
    "log.cleaner.io.max.bytes.per.second",
    DOUBLE,
    default=DOUBLE_MAX,
    live=Live.CLUSTER_WIDE,
    implemented=False,
    doc="The most bytes that compaction reads and writes per second.",
)
LOG_CLEANER_DELETE_RETENTION_MS = Setting(
    "log.cleaner.delete.retention.ms",
    LONG,
    default=DAY_MS,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    doc="How long a tombstone stays in a compacted log.",
)
LOG_CLEANER_MIN_COMPACTION_LAG_MS = Setting(
    "log.cleaner.min.compaction.lag.ms",
    LONG,
    default=0,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    doc="A record younger than this is not compacted.",
)
LOG_CLEANER_MAX_COMPACTION_LAG_MS = Setting(
    "log.cleaner.max.compaction.lag.ms",
    LONG,
    default=LONG_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    doc="A record older than this is compacted even if little has changed.",
)
LOG_CLEANER_MIN_CLEANABLE_RATIO = Setting(
    "log.cleaner.min.cleanable.ratio",
    DOUBLE,
    default=0.5,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    at_most=1,
    doc="The share of a log that must be new before it is compacted.",
)
BROKER_COMPRESSION_TYPE = Setting(
    "compression.type",
    STRING,
    default="producer",
    live=Live.CLUSTER_WIDE,
    one_of=("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
    importance=Importance.HIGH,
    doc="How batches are stored: as the producer sent them, or compressed anew.",
)
BROKER_COMPRESSION_GZIP_LEVEL = Setting(
    "compression.gzip.level",
    INT,
    default=-1,
    live=Live.CLUSTER_WIDE,
    check=rules.gzip_level,
    doc="The gzip level where the broker compresses.",
)
BROKER_COMPRESSION_LZ4_LEVEL = Setting(
    "compression.lz4.level",
    INT,
    default=9,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    at_most=17,
    doc="The lz4 level where the broker compresses.",
)
BROKER_COMPRESSION_ZSTD_LEVEL = Setting(
    "compression.zstd.level",
    INT,
    default=3,
    live=Live.CLUSTER_WIDE,
    at_least=-131_072,
    at_most=22,
    doc="The zstd level where the broker compresses.",
)
