"""Topics as the cluster makes them, and how replicas follow their leaders."""

from __future__ import annotations

from millstream.settings.declare import IfIgnored, Importance, Live, Setting
from millstream.settings.kinds import BOOLEAN, CLASS, INT, KIB, LONG, LONG_MAX, MIB, STRING

AUTO_CREATE_TOPICS_ENABLE = Setting(
    "auto.create.topics.enable",
    BOOLEAN,
    default=True,
    importance=Importance.HIGH,
    doc="Whether a topic that somebody asks for is created.",
)
DELETE_TOPIC_ENABLE = Setting(
    "delete.topic.enable", BOOLEAN, default=True, importance=Importance.HIGH, doc="Whether topics can be deleted."
)
NUM_PARTITIONS = Setting(
    "num.partitions", INT, default=1, at_least=1, doc="The partitions of a topic whose creator named none."
)
DEFAULT_REPLICATION_FACTOR = Setting(
    "default.replication.factor", INT, default=1, doc="The replicas of a topic whose creator named none."
)
BROKER_MIN_INSYNC_REPLICAS = Setting(
    "min.insync.replicas",
    INT,
    default=1,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.HIGH,
    doc="How many replicas must have a record before acks=all is answered.",
)
BROKER_UNCLEAN_LEADER_ELECTION_ENABLE = Setting(
    "unclean.leader.election.enable",
    BOOLEAN,
    default=False,
    live=Live.CLUSTER_WIDE,
    importance=Importance.HIGH,
    doc="Whether a replica that may have missed records can become leader when no other is left.",
)
CREATE_TOPIC_POLICY_CLASS_NAME = Setting(
    "create.topic.policy.class.name",
    CLASS.optional,
    default=None,
    importance=Importance.LOW,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="A class that may forbid the creation of a topic.",
)
ALTER_CONFIG_POLICY_CLASS_NAME = Setting(
    "alter.config.policy.class.name",
    CLASS.optional,
    default=None,
    importance=Importance.LOW,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="A class that may forbid a change of settings.",
)
NUM_REPLICA_FETCHERS = Setting(
    "num.replica.fetchers",
    INT,
    default=1,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.HIGH,
    doc="Fetchers per leader; each takes a share of the partitions.",
)
REPLICA_FETCH_BACKOFF_MS = Setting(
    "replica.fetch.backoff.ms",
    INT,
    default=1_000,
    at_least=0,
    doc="The pause after a failed fetch from a leader.",
)
REPLICA_FETCH_MAX_BYTES = Setting(
    "replica.fetch.max.bytes",
    INT,
    default=MIB,
    at_least=0,
    simulate=(1, MIB),
    doc="The bytes of one partition in a fetch from a leader.",
)
REPLICA_FETCH_MIN_BYTES = Setting(
    "replica.fetch.min.bytes",
    INT,
    default=1,
    importance=Importance.HIGH,
    doc="The least that a leader answers a follower with before the wait is over.",
)
REPLICA_FETCH_RESPONSE_MAX_BYTES = Setting(
    "replica.fetch.response.max.bytes",
    INT,
    default=10 * MIB,
    at_least=0,
    doc="The bytes of a whole answer to a follower's fetch.",
)
REPLICA_FETCH_WAIT_MAX_MS = Setting(
    "replica.fetch.wait.max.ms",
    INT,
    default=500,
    importance=Importance.HIGH,
    simulate=(50, 500),
    doc="The longest that a leader holds a follower's fetch.",
)
REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS = Setting(
    "replica.high.watermark.checkpoint.interval.ms",
    LONG,
    default=5_000,
    importance=Importance.HIGH,
    simulate=(200, 5_000),
    doc="How often high watermarks are written to disk.",
)
REPLICA_LAG_TIME_MAX_MS = Setting(
    "replica.lag.time.max.ms",
    LONG,
    default=30_000,
    importance=Importance.HIGH,
    simulate=(3_000, 10_000, 30_000),
    doc="A follower that has not caught up for so long leaves the ISR.",
)
REPLICA_SELECTOR_CLASS = Setting(
    "replica.selector.class",
    STRING.optional,
    default=None,
    doc="Chooses the replica that a reader is sent to: RackAwareReplicaSelector, or none for the leader.",
)
REPLICA_SOCKET_RECEIVE_BUFFER_BYTES = Setting(
    "replica.socket.receive.buffer.bytes",
    INT,
    default=64 * KIB,
    importance=Importance.HIGH,
    implemented=False,
    doc="The kernel's receive buffer for fetches from leaders.",
)
REPLICA_SOCKET_TIMEOUT_MS = Setting(
    "replica.socket.timeout.ms",
    INT,
    default=30_000,
    importance=Importance.HIGH,
    doc="How long a follower waits for its leader's answer.",
)
LEADER_REPLICATION_THROTTLED_RATE = Setting(
    "leader.replication.throttled.rate",
    LONG,
    default=LONG_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    dynamic_only=True,
    doc="The bytes per second that a leader sends to throttled replicas.",
)
FOLLOWER_REPLICATION_THROTTLED_RATE = Setting(
    "follower.replication.throttled.rate",
    LONG,
    default=LONG_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    dynamic_only=True,
    doc="The bytes per second that a follower takes for throttled replicas.",
)
REPLICA_ALTER_LOG_DIRS_IO_MAX_BYTES_PER_SECOND = Setting(
    "replica.alter.log.dirs.io.max.bytes.per.second",
    LONG,
    default=LONG_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    dynamic_only=True,
    implemented=False,
    doc="The bytes per second for moving replicas between directories.",
)
