"""Tiered storage. Millstream has none yet, and turning it on stops the start: data would be missing."""

from __future__ import annotations

from millstream.settings.declare import IfIgnored, Importance, Live, Setting
from millstream.settings.kinds import BOOLEAN, DOUBLE, GIB, INT, LONG, LONG_MAX, MINUTE_MS, STRING

REMOTE_LOG_STORAGE_SYSTEM_ENABLE = Setting(
    "remote.log.storage.system.enable",
    BOOLEAN,
    default=False,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="Whether the broker can keep closed segments in remote storage.",
)
FOLLOWER_FETCH_LAST_TIERED_OFFSET_ENABLE = Setting(
    "follower.fetch.last.tiered.offset.enable",
    BOOLEAN,
    default=False,
    live=Live.CLUSTER_WIDE,
    implemented=False,
    doc="Whether a new follower starts at the end of what remote storage has.",
)
REMOTE_FETCH_MAX_WAIT_MS = Setting(
    "remote.fetch.max.wait.ms",
    INT,
    default=500,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    implemented=False,
    doc="How long a fetch waits for remote storage.",
)
REMOTE_LIST_OFFSETS_REQUEST_TIMEOUT_MS = Setting(
    "remote.list.offsets.request.timeout.ms",
    LONG,
    default=30_000,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    implemented=False,
    doc="How long a look-up of offsets waits for remote storage.",
)
REMOTE_LOG_INDEX_FILE_CACHE_TOTAL_SIZE_BYTES = Setting(
    "remote.log.index.file.cache.total.size.bytes",
    LONG,
    default=GIB,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The disk space for indexes of remote segments.",
)
REMOTE_LOG_INDEX_FILE_CACHE_TTL_MS = Setting(
    "remote.log.index.file.cache.ttl.ms",
    LONG,
    default=15 * MINUTE_MS,
    at_least=-1,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="How long an unused index of a remote segment stays.",
)
REMOTE_LOG_MANAGER_COPIER_THREAD_POOL_SIZE = Setting(
    "remote.log.manager.copier.thread.pool.size",
    INT,
    default=10,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    implemented=False,
    doc="Threads that copy segments to remote storage.",
)
REMOTE_LOG_MANAGER_COPY_MAX_BYTES_PER_SECOND = Setting(
    "remote.log.manager.copy.max.bytes.per.second",
    LONG,
    default=LONG_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    implemented=False,
    doc="The bytes per second that are copied to remote storage.",
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_NUM = Setting(
    "remote.log.manager.copy.quota.window.num",
    INT,
    default=11,
    at_least=1,
    implemented=False,
    doc="The samples that the copy rate is measured over.",
)
REMOTE_LOG_MANAGER_COPY_QUOTA_WINDOW_SIZE_SECONDS = Setting(
    "remote.log.manager.copy.quota.window.size.seconds",
    INT,
    default=1,
    at_least=1,
    implemented=False,
    doc="The length of a sample of the copy rate.",
)
REMOTE_LOG_MANAGER_EXPIRATION_THREAD_POOL_SIZE = Setting(
    "remote.log.manager.expiration.thread.pool.size",
    INT,
    default=10,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    implemented=False,
    doc="Threads that delete expired remote segments.",
)
REMOTE_LOG_MANAGER_FETCH_MAX_BYTES_PER_SECOND = Setting(
    "remote.log.manager.fetch.max.bytes.per.second",
    LONG,
    default=LONG_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    implemented=False,
    doc="The bytes per second that are read from remote storage.",
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_NUM = Setting(
    "remote.log.manager.fetch.quota.window.num",
    INT,
    default=11,
    at_least=1,
    implemented=False,
    doc="The samples that the read rate is measured over.",
)
REMOTE_LOG_MANAGER_FETCH_QUOTA_WINDOW_SIZE_SECONDS = Setting(
    "remote.log.manager.fetch.quota.window.size.seconds",
    INT,
    default=1,
    at_least=1,
    implemented=False,
    doc="The length of a sample of the read rate.",
)
REMOTE_LOG_MANAGER_FOLLOWER_THREAD_POOL_SIZE = Setting(
    "remote.log.manager.follower.thread.pool.size",
    INT,
    default=2,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    implemented=False,
    doc="Threads for the followers' share of the work with remote storage.",
)
REMOTE_LOG_MANAGER_TASK_INTERVAL_MS = Setting(
    "remote.log.manager.task.interval.ms",
    LONG,
    default=30_000,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="How often segments to copy or delete are looked for.",
)
REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MAX_MS = Setting(
    "remote.log.manager.task.retry.backoff.max.ms",
    LONG,
    default=30_000,
    at_least=1,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="The longest pause after a failed round.",
)
REMOTE_LOG_MANAGER_TASK_RETRY_BACKOFF_MS = Setting(
    "remote.log.manager.task.retry.backoff.ms",
    LONG,
    default=500,
    at_least=1,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="The first pause after a failed round.",
)
REMOTE_LOG_MANAGER_TASK_RETRY_JITTER = Setting(
    "remote.log.manager.task.retry.jitter",
    DOUBLE,
    default=0.2,
    at_least=0,
    at_most=0.5,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="The random part of the pause after a failed round.",
)
REMOTE_LOG_MANAGER_THREAD_POOL_SIZE = Setting(
    "remote.log.manager.thread.pool.size",
    INT,
    default=2,
    at_least=1,
    implemented=False,
    doc="Threads for the work with remote storage.",
)
REMOTE_LOG_METADATA_CUSTOM_METADATA_MAX_BYTES = Setting(
    "remote.log.metadata.custom.metadata.max.bytes",
    INT,
    default=128,
    at_least=0,
    importance=Importance.LOW,
    implemented=False,
    doc="The largest custom metadata of a remote segment.",
)
REMOTE_LOG_METADATA_MANAGER_CLASS_NAME = Setting(
    "remote.log.metadata.manager.class.name",
    STRING,
    default="org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
    empty=False,
    implemented=False,
    doc="The class that knows what is in remote storage.",
)
REMOTE_LOG_METADATA_MANAGER_CLASS_PATH = Setting(
    "remote.log.metadata.manager.class.path",
    STRING.optional,
    default=None,
    implemented=False,
    doc="Where that class is loaded from.",
)
REMOTE_LOG_METADATA_MANAGER_IMPL_PREFIX = Setting(
    "remote.log.metadata.manager.impl.prefix",
    STRING,
    default="rlmm.config.",
    empty=False,
    implemented=False,
    doc="The prefix of that class's own settings.",
)
REMOTE_LOG_METADATA_MANAGER_LISTENER_NAME = Setting(
    "remote.log.metadata.manager.listener.name",
    STRING.optional,
    default=None,
    empty=False,
    implemented=False,
    doc="The listener that that class uses.",
)
REMOTE_LOG_READER_MAX_PENDING_TASKS = Setting(
    "remote.log.reader.max.pending.tasks",
    INT,
    default=100,
    at_least=1,
    implemented=False,
    doc="The most reads from remote storage that wait.",
)
REMOTE_LOG_READER_THREADS = Setting(
    "remote.log.reader.threads",
    INT,
    default=10,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    implemented=False,
    doc="Threads that read from remote storage.",
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_NAME = Setting(
    "remote.log.storage.manager.class.name",
    STRING.optional,
    default=None,
    empty=False,
    implemented=False,
    doc="The class that speaks to remote storage.",
)
REMOTE_LOG_STORAGE_MANAGER_CLASS_PATH = Setting(
    "remote.log.storage.manager.class.path",
    STRING.optional,
    default=None,
    implemented=False,
    doc="Where the storage class is loaded from.",
)
REMOTE_LOG_STORAGE_MANAGER_IMPL_PREFIX = Setting(
    "remote.log.storage.manager.impl.prefix",
    STRING,
    default="rsm.config.",
    empty=False,
    implemented=False,
    doc="The prefix of the storage class's own settings.",
)
