"""Share groups (KIP-932) and the coordinator that keeps their state."""

from __future__ import annotations

from millstream.settings.declare import Importance, Live, Setting
from millstream.settings.kinds import HOUR_MS, INT, KIB, LIST, MIB, MINUTE_MS, SHORT, STRING

GROUP_SHARE_ASSIGNORS = Setting(
    "group.share.assignors",
    LIST,
    default=("simple",),
    empty=False,
    implemented=False,
    doc="The assignors of share groups; one for now.",
)
GROUP_SHARE_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.share.assignment.interval.ms",
    INT,
    default=1_000,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    implemented=False,
    doc="The least time between two assignments of a share group.",
)
GROUP_SHARE_MIN_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.share.min.assignment.interval.ms",
    INT,
    default=0,
    at_least=0,
    implemented=False,
    doc="The smallest interval between assignments that a share group may set.",
)
GROUP_SHARE_MAX_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.share.max.assignment.interval.ms",
    INT,
    default=15_000,
    at_least=0,
    implemented=False,
    doc="The largest interval between assignments that a share group may set.",
)
GROUP_SHARE_DELIVERY_COUNT_LIMIT = Setting(
    "group.share.delivery.count.limit",
    INT,
    default=5,
    at_least=2,
    at_most=10,
    implemented=False,
    doc="How often a record is delivered before it is given up.",
)
GROUP_SHARE_MIN_DELIVERY_COUNT_LIMIT = Setting(
    "group.share.min.delivery.count.limit",
    INT,
    default=2,
    at_least=2,
    at_most=5,
    implemented=False,
    doc="The smallest delivery limit that a share group may set.",
)
GROUP_SHARE_MAX_DELIVERY_COUNT_LIMIT = Setting(
    "group.share.max.delivery.count.limit",
    INT,
    default=10,
    at_least=5,
    at_most=25,
    implemented=False,
    doc="The largest delivery limit that a share group may set.",
)
GROUP_SHARE_HEARTBEAT_INTERVAL_MS = Setting(
    "group.share.heartbeat.interval.ms",
    INT,
    default=5_000,
    at_least=1,
    implemented=False,
    doc="How often a share group's member sends a heartbeat.",
)
GROUP_SHARE_MIN_HEARTBEAT_INTERVAL_MS = Setting(
    "group.share.min.heartbeat.interval.ms",
    INT,
    default=5_000,
    at_least=1,
    implemented=False,
    doc="The shortest heartbeat interval that a share group may set.",
)
GROUP_SHARE_MAX_HEARTBEAT_INTERVAL_MS = Setting(
    "group.share.max.heartbeat.interval.ms",
    INT,
    default=15_000,
    at_least=1,
    implemented=False,
    doc="The longest heartbeat interval that a share group may set.",
)
GROUP_SHARE_SESSION_TIMEOUT_MS = Setting(
    "group.share.session.timeout.ms",
    INT,
    default=45_000,
    at_least=1,
    implemented=False,
    doc="A share group's member that was silent for so long is removed.",
)
GROUP_SHARE_MIN_SESSION_TIMEOUT_MS = Setting(
    "group.share.min.session.timeout.ms",
    INT,
    default=45_000,
    at_least=1,
    implemented=False,
    doc="The shortest session that a share group may set.",
)
GROUP_SHARE_MAX_SESSION_TIMEOUT_MS = Setting(
    "group.share.max.session.timeout.ms",
    INT,
    default=MINUTE_MS,
    at_least=1,
    implemented=False,
    doc="The longest session that a share group may set.",
)
GROUP_SHARE_RECORD_LOCK_DURATION_MS = Setting(
    "group.share.record.lock.duration.ms",
    INT,
    default=30_000,
    at_least=1_000,
    at_most=HOUR_MS,
    implemented=False,
    doc="How long a record is reserved for the member that fetched it.",
)
GROUP_SHARE_MIN_RECORD_LOCK_DURATION_MS = Setting(
    "group.share.min.record.lock.duration.ms",
    INT,
    default=15_000,
    at_least=1_000,
    at_most=30_000,
    implemented=False,
    doc="The shortest reservation that a share group may set.",
)
GROUP_SHARE_MAX_RECORD_LOCK_DURATION_MS = Setting(
    "group.share.max.record.lock.duration.ms",
    INT,
    default=MINUTE_MS,
    at_least=30_000,
    at_most=HOUR_MS,
    implemented=False,
    doc="The longest reservation that a share group may set.",
)
GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS = Setting(
    "group.share.partition.max.record.locks",
    INT,
    default=2_000,
    at_least=100,
    at_most=10_000,
    implemented=False,
    doc="The most records of a partition that are reserved at once.",
)
GROUP_SHARE_MIN_PARTITION_MAX_RECORD_LOCKS = Setting(
    "group.share.min.partition.max.record.locks",
    INT,
    default=100,
    at_least=100,
    at_most=2_000,
    implemented=False,
    doc="The smallest limit on reserved records that a share group may set.",
)
GROUP_SHARE_MAX_PARTITION_MAX_RECORD_LOCKS = Setting(
    "group.share.max.partition.max.record.locks",
    INT,
    default=4_000,
    at_least=2_000,
    at_most=10_000,
    implemented=False,
    doc="The largest limit on reserved records that a share group may set.",
)
GROUP_SHARE_MAX_SIZE = Setting(
    "group.share.max.size",
    INT,
    default=200,
    at_least=1,
    at_most=1_000,
    implemented=False,
    doc="The most members of a share group.",
)
GROUP_SHARE_MAX_SHARE_SESSIONS = Setting(
    "group.share.max.share.sessions",
    INT,
    default=2_000,
    at_least=1,
    implemented=False,
    doc="The most share sessions of a broker.",
)
GROUP_SHARE_INITIALIZE_RETRY_INTERVAL_MS = Setting(
    "group.share.initialize.retry.interval.ms",
    INT,
    default=30_000,
    at_least=1,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="When a share group's state is initialized again after a failure.",
)
GROUP_SHARE_PERSISTER_CLASS_NAME = Setting(
    "group.share.persister.class.name",
    STRING,
    default="org.apache.kafka.server.share.persister.DefaultStatePersister",
    internal=True,
    implemented=False,
    doc="The class that keeps the state of share groups.",
)
SHARE_COORDINATOR_APPEND_LINGER_MS = Setting(
    "share.coordinator.append.linger.ms",
    INT,
    default=-1,
    at_least=-1,
    implemented=False,
    doc="How long the share coordinator gathers records before it writes them; -1 as long as it is busy.",
)
SHARE_COORDINATOR_CACHED_BUFFER_MAX_BYTES = Setting(
    "share.coordinator.cached.buffer.max.bytes",
    INT,
    default=MIB + 12,
    live=Live.CLUSTER_WIDE,
    at_least=512 * KIB,
    implemented=False,
    doc="The largest buffer for writing that the share coordinator keeps.",
)
SHARE_COORDINATOR_COLD_PARTITION_SNAPSHOT_INTERVAL_MS = Setting(
    "share.coordinator.cold.partition.snapshot.interval.ms",
    INT,
    default=5 * MINUTE_MS,
    at_least=1,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="How often the state of a quiet partition is written anew.",
)
SHARE_COORDINATOR_LOAD_BUFFER_SIZE = Setting(
    "share.coordinator.load.buffer.size",
    INT,
    default=5 * MIB,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="How much is read at once when a share coordinator loads its state.",
)
SHARE_COORDINATOR_SNAPSHOT_UPDATE_RECORDS_PER_SNAPSHOT = Setting(
    "share.coordinator.snapshot.update.records.per.snapshot",
    INT,
    default=500,
    at_least=0,
    at_most=500,
    implemented=False,
    doc="How many updates follow a snapshot before the next one.",
)
SHARE_COORDINATOR_STATE_TOPIC_COMPRESSION_CODEC = Setting(
    "share.coordinator.state.topic.compression.codec",
    INT,
    default=0,
    importance=Importance.HIGH,
    implemented=False,
    doc="The compression of the share state topic, by number.",
)
SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR = Setting(
    "share.coordinator.state.topic.min.isr",
    SHORT,
    default=2,
    at_least=1,
    importance=Importance.HIGH,
    doc="How many replicas must have a record of the share state topic.",
)
SHARE_COORDINATOR_STATE_TOPIC_NUM_PARTITIONS = Setting(
    "share.coordinator.state.topic.num.partitions",
    INT,
    default=50,
    at_least=1,
    importance=Importance.HIGH,
    doc="The partitions of the share state topic; must not change once it exists.",
)
SHARE_COORDINATOR_STATE_TOPIC_PRUNE_INTERVAL_MS = Setting(
    "share.coordinator.state.topic.prune.interval.ms",
    INT,
    default=5 * MINUTE_MS,
    at_least=1,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="How often old records of the share state topic are removed.",
)
SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR = Setting(
    "share.coordinator.state.topic.replication.factor",
    SHORT,
    default=3,
    at_least=1,
    importance=Importance.HIGH,
    doc="The replicas of the share state topic.",
)
SHARE_COORDINATOR_STATE_TOPIC_SEGMENT_BYTES = Setting(
    "share.coordinator.state.topic.segment.bytes",
    INT,
    default=100 * MIB,
    at_least=1,
    importance=Importance.HIGH,
    doc="The segment size of the share state topic.",
)
SHARE_COORDINATOR_THREADS = Setting(
    "share.coordinator.threads",
    INT,
    default=1,
    at_least=1,
    implemented=False,
    doc="Apache Kafka's threads of the share coordinator.",
)
SHARE_COORDINATOR_WRITE_TIMEOUT_MS = Setting(
    "share.coordinator.write.timeout.ms",
    INT,
    default=5_000,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="How long the share coordinator waits for its replicas.",
)
