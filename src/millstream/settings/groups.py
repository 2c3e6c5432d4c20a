"""The group coordinator: committed offsets, and classic, consumer (KIP-848) and streams groups."""

from __future__ import annotations

from millstream.settings.declare import Importance, Live, Setting
from millstream.settings.kinds import INT, INT_MAX, KIB, LIST, LONG, MIB, MINUTE_MS, SHORT, STRING

GROUP_COORDINATOR_REBALANCE_PROTOCOLS = Setting(
    "group.coordinator.rebalance.protocols",
    LIST,
    default=("classic", "consumer", "streams"),
    one_of=("consumer", "classic", "share", "streams"),
    empty=False,
    doc="The kinds of group that the broker serves.",
)
GROUP_COORDINATOR_THREADS = Setting(
    "group.coordinator.threads",
    INT,
    default=4,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="Apache Kafka's threads of the group coordinator.",
)
GROUP_COORDINATOR_BACKGROUND_THREADS = Setting(
    "group.coordinator.background.threads",
    INT,
    default=2,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="Apache Kafka's threads for assignments.",
)
GROUP_COORDINATOR_APPEND_LINGER_MS = Setting(
    "group.coordinator.append.linger.ms",
    INT,
    default=-1,
    at_least=-1,
    doc="How long members of a consumer group that come together are gathered for one assignment; -1 as long as more "
    "keep coming, 0 not at all.",
)
GROUP_COORDINATOR_CACHED_BUFFER_MAX_BYTES = Setting(
    "group.coordinator.cached.buffer.max.bytes",
    INT,
    default=MIB + 12,
    live=Live.CLUSTER_WIDE,
    at_least=512 * KIB,
    implemented=False,
    doc="The largest buffer for writing that a coordinator keeps.",
)
GROUP_INITIAL_REBALANCE_DELAY_MS = Setting(
    "group.initial.rebalance.delay.ms",
    INT,
    default=3_000,
    doc="How long an empty classic group waits for more members before its first rebalance.",
)
GROUP_MAX_SESSION_TIMEOUT_MS = Setting(
    "group.max.session.timeout.ms",
    INT,
    default=30 * MINUTE_MS,
    doc="The longest session a classic member may ask for.",
)
GROUP_MIN_SESSION_TIMEOUT_MS = Setting(
    "group.min.session.timeout.ms",
    INT,
    default=6_000,
    doc="The shortest session a classic member may ask for.",
)
GROUP_MAX_SIZE = Setting("group.max.size", INT, default=INT_MAX, at_least=1, doc="The most members of a classic group.")
GROUP_CONSUMER_ASSIGNORS = Setting(
    "group.consumer.assignors",
    LIST,
    default=("uniform", "range"),
    empty=False,
    doc="The assignors of consumer groups, the default first.",
)
GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.consumer.assignment.interval.ms",
    INT,
    default=1_000,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    doc="The least time between two assignments of a consumer group.",
)
GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.consumer.min.assignment.interval.ms",
    INT,
    default=0,
    at_least=0,
    doc="The smallest interval between assignments that a consumer group may set.",
)
GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.consumer.max.assignment.interval.ms",
    INT,
    default=15_000,
    at_least=0,
    doc="The largest interval between assignments that a consumer group may set.",
)
GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS = Setting(
    "group.consumer.heartbeat.interval.ms",
    INT,
    default=5_000,
    at_least=1,
    doc="How often a consumer group's member sends a heartbeat.",
)
GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS = Setting(
    "group.consumer.min.heartbeat.interval.ms",
    INT,
    default=5_000,
    at_least=1,
    doc="The shortest heartbeat interval that a consumer group may set.",
)
GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS = Setting(
    "group.consumer.max.heartbeat.interval.ms",
    INT,
    default=15_000,
    at_least=1,
    doc="The longest heartbeat interval that a consumer group may set.",
)
GROUP_CONSUMER_SESSION_TIMEOUT_MS = Setting(
    "group.consumer.session.timeout.ms",
    INT,
    default=45_000,
    at_least=1,
    doc="A consumer group's member that was silent for so long is removed.",
)
GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS = Setting(
    "group.consumer.min.session.timeout.ms",
    INT,
    default=45_000,
    at_least=1,
    doc="The shortest session that a consumer group may set.",
)
GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS = Setting(
    "group.consumer.max.session.timeout.ms",
    INT,
    default=MINUTE_MS,
    at_least=1,
    doc="The longest session that a consumer group may set.",
)
GROUP_CONSUMER_MAX_SIZE = Setting(
    "group.consumer.max.size",
    INT,
    default=INT_MAX,
    at_least=1,
    doc="The most members of a consumer group.",
)
GROUP_CONSUMER_MIGRATION_POLICY = Setting(
    "group.consumer.migration.policy",
    STRING,
    default="bidirectional",
    one_of=("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    any_case=True,
    doc="Whether classic groups may become consumer groups and back.",
)
GROUP_CONSUMER_REGEX_REFRESH_INTERVAL_MS = Setting(
    "group.consumer.regex.refresh.interval.ms",
    INT,
    default=10 * MINUTE_MS,
    at_least=10_000,
    internal=True,
    doc="How often the topics behind a pattern are looked up again.",
)
GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.streams.assignment.interval.ms",
    INT,
    default=1_000,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    implemented=False,
    doc="The least time between two assignments of a streams group.",
)
GROUP_STREAMS_MIN_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.streams.min.assignment.interval.ms",
    INT,
    default=0,
    at_least=0,
    implemented=False,
    doc="The smallest interval between assignments that a streams group may set.",
)
GROUP_STREAMS_MAX_ASSIGNMENT_INTERVAL_MS = Setting(
    "group.streams.max.assignment.interval.ms",
    INT,
    default=15_000,
    at_least=0,
    implemented=False,
    doc="The largest interval between assignments that a streams group may set.",
)
GROUP_STREAMS_HEARTBEAT_INTERVAL_MS = Setting(
    "group.streams.heartbeat.interval.ms",
    INT,
    default=5_000,
    at_least=1,
    implemented=False,
    doc="How often a streams group's member sends a heartbeat.",
)
GROUP_STREAMS_MIN_HEARTBEAT_INTERVAL_MS = Setting(
    "group.streams.min.heartbeat.interval.ms",
    INT,
    default=5_000,
    at_least=1,
    implemented=False,
    doc="The shortest heartbeat interval that a streams group may set.",
)
GROUP_STREAMS_MAX_HEARTBEAT_INTERVAL_MS = Setting(
    "group.streams.max.heartbeat.interval.ms",
    INT,
    default=15_000,
    at_least=1,
    implemented=False,
    doc="The longest heartbeat interval that a streams group may set.",
)
GROUP_STREAMS_SESSION_TIMEOUT_MS = Setting(
    "group.streams.session.timeout.ms",
    INT,
    default=45_000,
    at_least=1,
    implemented=False,
    doc="A streams group's member that was silent for so long is removed.",
)
GROUP_STREAMS_MIN_SESSION_TIMEOUT_MS = Setting(
    "group.streams.min.session.timeout.ms",
    INT,
    default=45_000,
    at_least=1,
    implemented=False,
    doc="The shortest session that a streams group may set.",
)
GROUP_STREAMS_MAX_SESSION_TIMEOUT_MS = Setting(
    "group.streams.max.session.timeout.ms",
    INT,
    default=MINUTE_MS,
    at_least=1,
    implemented=False,
    doc="The longest session that a streams group may set.",
)
GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS = Setting(
    "group.streams.initial.rebalance.delay.ms",
    INT,
    default=3_000,
    at_least=0,
    implemented=False,
    doc="How long an empty streams group waits for more members before its first assignment.",
)
GROUP_STREAMS_NUM_STANDBY_REPLICAS = Setting(
    "group.streams.num.standby.replicas",
    INT,
    default=0,
    at_least=0,
    implemented=False,
    doc="The standby copies of each task of a streams group.",
)
GROUP_STREAMS_MAX_STANDBY_REPLICAS = Setting(
    "group.streams.max.standby.replicas",
    INT,
    default=2,
    at_least=0,
    implemented=False,
    doc="The most standby copies that a streams group may set.",
)
GROUP_STREAMS_MAX_SIZE = Setting(
    "group.streams.max.size",
    INT,
    default=INT_MAX,
    at_least=1,
    implemented=False,
    doc="The most members of a streams group.",
)
OFFSET_METADATA_MAX_BYTES = Setting(
    "offset.metadata.max.bytes",
    INT,
    default=4_096,
    importance=Importance.HIGH,
    doc="The longest text that may be committed with an offset.",
)
OFFSETS_COMMIT_TIMEOUT_MS = Setting(
    "offsets.commit.timeout.ms",
    INT,
    default=5_000,
    at_least=1,
    importance=Importance.HIGH,
    doc="How long a group's coordinator waits for the replicas of what it wrote before it says that it is not "
    "available.",
)
OFFSETS_LOAD_BUFFER_SIZE = Setting(
    "offsets.load.buffer.size",
    INT,
    default=5 * MIB,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="How much is read at once when a coordinator loads its groups.",
)
OFFSETS_RETENTION_MINUTES = Setting(
    "offsets.retention.minutes",
    INT,
    default=10_080,
    at_least=1,
    importance=Importance.HIGH,
    doc="How long the offsets of an empty group are kept.",
)
OFFSETS_RETENTION_CHECK_INTERVAL_MS = Setting(
    "offsets.retention.check.interval.ms",
    LONG,
    default=10 * MINUTE_MS,
    at_least=1,
    importance=Importance.HIGH,
    doc="How often expired offsets are looked for.",
)
OFFSETS_TOPIC_COMPRESSION_CODEC = Setting(
    "offsets.topic.compression.codec",
    INT,
    default=0,
    importance=Importance.HIGH,
    implemented=False,
    doc="The compression of the offsets topic, by number.",
)
OFFSETS_TOPIC_NUM_PARTITIONS = Setting(
    "offsets.topic.num.partitions",
    INT,
    default=50,
    at_least=1,
    importance=Importance.HIGH,
    doc="The partitions of the offsets topic; must not change once it exists.",
)
OFFSETS_TOPIC_REPLICATION_FACTOR = Setting(
    "offsets.topic.replication.factor",
    SHORT,
    default=3,
    at_least=1,
    importance=Importance.HIGH,
    doc="The replicas of the offsets topic.",
)
OFFSETS_TOPIC_SEGMENT_BYTES = Setting(
    "offsets.topic.segment.bytes",
    INT,
    default=100 * MIB,
    at_least=1,
    importance=Importance.HIGH,
    doc="The segment size of the offsets topic.",
)
