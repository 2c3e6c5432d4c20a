"""Where and how logs are kept, broker-wide: directories, segments, flushing, retention, compaction.

Most of these are the defaults of topic settings (`topics.py`), under the names that Apache Kafka gave them.
"""

from __future__ import annotations

from millstream.settings.declare import Importance, Live, Setting
from millstream.settings.kinds import BOOLEAN, DAY_MS, GIB, HOUR_MS, INT, LIST, LONG, LONG_MAX, MIB, MINUTE_MS, STRING

LOG_DIR = Setting(
    "log.dir",
    LIST,
    default=("millstream-data",),
    empty=False,
    importance=Importance.HIGH,
    differs="Kafka keeps its logs in /tmp, where they get lost.",
    doc="The directory of the logs, used where log.dirs is not set.",
)
LOG_DIRS = Setting(
    "log.dirs", LIST.optional, default=None, empty=False, importance=Importance.HIGH, doc="The directories of the logs."
)
CORDONED_LOG_DIRS = Setting(
    "cordoned.log.dirs",
    LIST,
    default=(),
    live=Live.PER_BROKER,
    implemented=False,
    doc="Directories that get no new replicas; * for all.",
)
LOG_DIR_FAILURE_TIMEOUT_MS = Setting(
    "log.dir.failure.timeout.ms",
    LONG,
    default=30_000,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="A broker that cannot tell the controller of a failed directory for so long stops.",
)
LOG_SEGMENT_BYTES = Setting(
    "log.segment.bytes",
    INT,
    default=GIB,
    live=Live.CLUSTER_WIDE,
    at_least=MIB,
    importance=Importance.HIGH,
    doc="The size at which a segment is closed.",
)
LOG_ROLL_MS = Setting(
    "log.roll.ms",
    LONG.optional,
    default=None,
    live=Live.CLUSTER_WIDE,
    importance=Importance.HIGH,
    doc="The age at which a segment is closed; log.roll.hours if not set.",
)
LOG_ROLL_HOURS = Setting(
    "log.roll.hours",
    INT,
    default=168,
    at_least=1,
    importance=Importance.HIGH,
    doc="The age in hours at which a segment is closed.",
)
LOG_ROLL_JITTER_MS = Setting(
    "log.roll.jitter.ms",
    LONG.optional,
    default=None,
    live=Live.CLUSTER_WIDE,
    importance=Importance.HIGH,
    doc="The most that is randomly taken off log.roll.ms; log.roll.jitter.hours if not set.",
)
LOG_ROLL_JITTER_HOURS = Setting(
    "log.roll.jitter.hours",
    INT,
    default=0,
    at_least=0,
    importance=Importance.HIGH,
    doc="The most hours that are randomly taken off the age at which a segment is closed.",
)
LOG_RETENTION_MS = Setting(
    "log.retention.ms",
    LONG.optional,
    default=None,
    live=Live.CLUSTER_WIDE,
    importance=Importance.HIGH,
    doc="How long a closed segment is kept, -1 for ever; log.retention.minutes if not set.",
)
LOG_RETENTION_MINUTES = Setting(
    "log.retention.minutes",
    INT.optional,
    default=None,
    importance=Importance.HIGH,
    doc="How many minutes a closed segment is kept; log.retention.hours if not set.",
)
LOG_RETENTION_HOURS = Setting(
    "log.retention.hours", INT, default=168, importance=Importance.HIGH, doc="How many hours a closed segment is kept."
)
LOG_RETENTION_BYTES = Setting(
    "log.retention.bytes",
    LONG,
    default=-1,
    live=Live.CLUSTER_WIDE,
    importance=Importance.HIGH,
    doc="The size beyond which a partition loses its oldest segments; -1 for no limit.",
)
LOG_RETENTION_CHECK_INTERVAL_MS = Setting(
    "log.retention.check.interval.ms", LONG, default=5 * MINUTE_MS, at_least=1, doc="How often retention is applied."
)
LOG_CLEANUP_POLICY = Setting(
    "log.cleanup.policy",
    LIST,
    default=("delete",),
    live=Live.CLUSTER_WIDE,
    one_of=("compact", "delete"),
    doc="What happens to old segments: they are deleted, compacted, or both; nothing if empty.",
)
LOG_INDEX_SIZE_MAX_BYTES = Setting(
    "log.index.size.max.bytes",
    INT,
    default=10 * MIB,
    live=Live.CLUSTER_WIDE,
    at_least=4,
    doc="The largest index of a segment.",
)
LOG_INDEX_INTERVAL_BYTES = Setting(
    "log.index.interval.bytes",
    INT,
    default=4_096,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    doc="How many bytes of log lie between two entries of an index.",
)
LOG_FLUSH_INTERVAL_MESSAGES = Setting(
    "log.flush.interval.messages",
    LONG,
    default=LONG_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.HIGH,
    doc="After so many records a partition is flushed to disk.",
)
LOG_FLUSH_INTERVAL_MS = Setting(
    "log.flush.interval.ms",
    LONG.optional,
    default=None,
    live=Live.CLUSTER_WIDE,
    importance=Importance.HIGH,
    doc="After so long a record is flushed to disk; log.flush.scheduler.interval.ms if not set.",
)
LOG_FLUSH_SCHEDULER_INTERVAL_MS = Setting(
    "log.flush.scheduler.interval.ms",
    LONG,
    default=LONG_MAX,
    importance=Importance.HIGH,
    doc="How often the broker looks for logs that need flushing.",
)
LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS = Setting(
    "log.flush.offset.checkpoint.interval.ms",
    INT,
    default=MINUTE_MS,
    at_least=0,
    importance=Importance.HIGH,
    simulate=(500, MINUTE_MS),
    doc="How often the recovery points are written.",
)
LOG_FLUSH_START_OFFSET_CHECKPOINT_INTERVAL_MS = Setting(
    "log.flush.start.offset.checkpoint.interval.ms",
    INT,
    default=MINUTE_MS,
    at_least=0,
    importance=Importance.HIGH,
    implemented=False,
    doc="How often the log start offsets are written.",
)
LOG_PREALLOCATE = Setting(
    "log.preallocate",
    BOOLEAN,
    default=False,
    live=Live.CLUSTER_WIDE,
    implemented=False,
    doc="Whether a new segment's file is made at its full size.",
)
LOG_SEGMENT_DELETE_DELAY_MS = Setting(
    "log.segment.delete.delay.ms",
    LONG,
    default=MINUTE_MS,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    importance=Importance.HIGH,
    doc="How long a deleted segment stays on disk under another name.",
)
LOG_INITIAL_TASK_DELAY_MS = Setting(
    "log.initial.task.delay.ms",
    LONG,
    default=30_000,
    at_least=0,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="How long after the start the first round of background work on logs comes.",
)
LOG_MESSAGE_TIMESTAMP_TYPE = Setting(
    "log.message.timestamp.type",
    STRING,
    default="CreateTime",
    live=Live.CLUSTER_WIDE,
    one_of=("CreateTime", "LogAppendTime"),
    doc="Whether a record keeps the producer's time or gets the broker's.",
)
LOG_MESSAGE_TIMESTAMP_BEFORE_MAX_MS = Setting(
    "log.message.timestamp.before.max.ms",
    LONG,
    default=LONG_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    doc="How far a record's time may lie behind the broker's.",
)
LOG_MESSAGE_TIMESTAMP_AFTER_MAX_MS = Setting(
    "log.message.timestamp.after.max.ms",
    LONG,
    default=HOUR_MS,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    doc="How far a record's time may lie ahead of the broker's.",
)
LOG_LOCAL_RETENTION_MS = Setting(
    "log.local.retention.ms",
    LONG,
    default=-2,
    live=Live.CLUSTER_WIDE,
    at_least=-2,
    implemented=False,
    doc="How long data that is also in remote storage stays local; -2 for as long as log.retention.ms.",
)
LOG_LOCAL_RETENTION_BYTES = Setting(
    "log.local.retention.bytes",
    LONG,
    default=-2,
    live=Live.CLUSTER_WIDE,
    at_least=-2,
    implemented=False,
    doc="How much data that is also in remote storage stays local; -2 for log.retention.bytes.",
)
MESSAGE_MAX_BYTES = Setting(
    "message.max.bytes",
    INT,
    default=MIB + 12,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    importance=Importance.HIGH,
    doc="The largest record batch.",
)
NUM_RECOVERY_THREADS_PER_DATA_DIR = Setting(
    "num.recovery.threads.per.data.dir",
    INT,
    default=2,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="Apache Kafka's threads for recovery at the start.",
)
NUM_REPLICA_ALTER_LOG_DIRS_THREADS = Setting(
    "num.replica.alter.log.dirs.threads",
    INT.optional,
    default=None,
    importance=Importance.HIGH,
    implemented=False,
    doc="Apache Kafka's threads for moving replicas between directories.",
)
PRODUCER_ID_EXPIRATION_MS = Setting(
    "producer.id.expiration.ms",
    INT,
    default=DAY_MS,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.LOW,
    simulate=(10_000, DAY_MS),
    doc="A producer that was silent for so long is forgotten.",
)
PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS = Setting(
    "producer.id.expiration.check.interval.ms",
    INT,
    default=10 * MINUTE_MS,
    at_least=1,
    importance=Importance.LOW,
    internal=True,
    doc="How often silent producers are looked for.",
)
