"""Who this node is, and how it takes part in the cluster: roles, the metadata quorum, the metadata log."""

from __future__ import annotations

from millstream.settings import rules
from millstream.settings.declare import Importance, Setting
from millstream.settings.kinds import BOOLEAN, DAY_MS, GIB, HOUR_MS, INT, LIST, LONG, LONG_MAX, MIB, MINUTE_MS, STRING

NODE_ID = Setting(
    "node.id",
    INT,
    default=1,
    at_least=0,
    importance=Importance.HIGH,
    differs="Kafka has no default; a node that stands alone needs no number from anybody.",
    doc="This node's number, unique in the cluster.",
)
BROKER_ID = Setting(
    "broker.id",
    INT,
    default=-1,
    importance=Importance.HIGH,
    doc="The older name of node.id; used where node.id is not set.",
)
PROCESS_ROLES = Setting(
    "process.roles",
    LIST,
    default=("broker", "controller"),
    one_of=("broker", "controller"),
    empty=False,
    importance=Importance.HIGH,
    differs="Kafka has no default; a node that stands alone is both.",
    doc="What this node is: a broker, a controller, or both.",
)
BROKER_RACK = Setting(
    "broker.rack",
    STRING.optional,
    default=None,
    doc="Where this broker stands; replicas are spread over racks and readers may prefer their own.",
)
CONTROLLER_QUORUM_VOTERS = Setting(
    "controller.quorum.voters",
    LIST,
    default=(),
    check=rules.quorum_voters,
    importance=Importance.HIGH,
    doc="The controllers of a quorum with fixed voters, as id@host:port.",
)
CONTROLLER_QUORUM_BOOTSTRAP_SERVERS = Setting(
    "controller.quorum.bootstrap.servers",
    LIST,
    default=(),
    check=rules.bootstrap_servers,
    importance=Importance.HIGH,
    doc="Where to find the controllers of a quorum whose voters can change, as host:port.",
)
CONTROLLER_QUORUM_AUTO_JOIN_ENABLE = Setting(
    "controller.quorum.auto.join.enable",
    BOOLEAN,
    default=False,
    importance=Importance.LOW,
    doc="Whether a new controller asks by itself to become a voter.",
)
CONTROLLER_QUORUM_ELECTION_TIMEOUT_MS = Setting(
    "controller.quorum.election.timeout.ms",
    INT,
    default=1_000,
    at_least=0,
    importance=Importance.HIGH,
    doc="How long a candidate waits for votes before it tries again.",
)
CONTROLLER_QUORUM_ELECTION_BACKOFF_MAX_MS = Setting(
    "controller.quorum.election.backoff.max.ms",
    INT,
    default=1_000,
    at_least=0,
    importance=Importance.HIGH,
    doc="The longest random pause before the next election.",
)
CONTROLLER_QUORUM_FETCH_TIMEOUT_MS = Setting(
    "controller.quorum.fetch.timeout.ms",
    INT,
    default=2_000,
    at_least=0,
    importance=Importance.HIGH,
    doc="How long a follower goes without an answer from the leader before it stands for election.",
)
CONTROLLER_QUORUM_REQUEST_TIMEOUT_MS = Setting(
    "controller.quorum.request.timeout.ms",
    INT,
    default=2_000,
    at_least=0,
    doc="How long a request between controllers may take.",
)
CONTROLLER_QUORUM_RETRY_BACKOFF_MS = Setting(
    "controller.quorum.retry.backoff.ms",
    INT,
    default=20,
    at_least=0,
    importance=Importance.LOW,
    doc="The first pause before a request between controllers is tried again.",
)
CONTROLLER_QUORUM_APPEND_LINGER_MS = Setting(
    "controller.quorum.append.linger.ms",
    INT,
    default=25,
    at_least=0,
    implemented=False,
    doc="How long the quorum's leader gathers records before it writes them to disk.",
)
CONTROLLER_QUORUM_FETCH_MAX_BYTES = Setting(
    "controller.quorum.fetch.max.bytes",
    INT,
    default=MIB,
    at_least=1,
    importance=Importance.LOW,
    doc="The most bytes of the metadata log in one fetch between controllers.",
)
CONTROLLER_QUORUM_FETCH_SNAPSHOT_MAX_BYTES = Setting(
    "controller.quorum.fetch.snapshot.max.bytes",
    INT,
    default=MIB,
    at_least=1,
    importance=Importance.LOW,
    doc="The most bytes of a metadata snapshot in one fetch.",
)
CONTROLLER_SOCKET_TIMEOUT_MS = Setting(
    "controller.socket.timeout.ms",
    INT,
    default=30_000,
    implemented=False,
    doc="How long a broker waits for its controller's answer.",
)
CONTROLLER_PERFORMANCE_SAMPLE_PERIOD_MS = Setting(
    "controller.performance.sample.period.ms",
    LONG,
    default=MINUTE_MS,
    at_least=100,
    internal=True,
    implemented=False,
    doc="How often the controller reports on its own slow events.",
)
CONTROLLER_PERFORMANCE_ALWAYS_LOG_THRESHOLD_MS = Setting(
    "controller.performance.always.log.threshold.ms",
    LONG,
    default=2_000,
    at_least=0,
    internal=True,
    implemented=False,
    doc="An event of the controller that takes longer is always logged.",
)
METADATA_LOG_DIR = Setting(
    "metadata.log.dir",
    STRING.optional,
    default=None,
    importance=Importance.HIGH,
    doc="Where the metadata log lives; the first of log.dirs if not set.",
)
METADATA_LOG_SEGMENT_BYTES = Setting(
    "metadata.log.segment.bytes",
    INT,
    default=GIB,
    at_least=8 * MIB,
    importance=Importance.HIGH,
    doc="The size at which a segment of the metadata log is closed.",
)
METADATA_LOG_SEGMENT_MS = Setting(
    "metadata.log.segment.ms",
    LONG,
    default=7 * DAY_MS,
    importance=Importance.HIGH,
    doc="The age at which a segment of the metadata log is closed.",
)
METADATA_MAX_RETENTION_BYTES = Setting(
    "metadata.max.retention.bytes",
    LONG,
    default=100 * MIB,
    importance=Importance.HIGH,
    doc="How much of the metadata log and its snapshots is kept.",
)
METADATA_MAX_RETENTION_MS = Setting(
    "metadata.max.retention.ms",
    LONG,
    default=7 * DAY_MS,
    importance=Importance.HIGH,
    doc="How long old parts of the metadata log and old snapshots are kept.",
)
METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS = Setting(
    "metadata.log.max.record.bytes.between.snapshots",
    LONG,
    default=20 * MIB,
    at_least=1,
    importance=Importance.HIGH,
    simulate=(1_000, 20 * MIB),
    doc="A snapshot is written after so many bytes of new metadata.",
)
METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS = Setting(
    "metadata.log.max.snapshot.interval.ms",
    LONG,
    default=HOUR_MS,
    at_least=0,
    importance=Importance.HIGH,
    doc="A snapshot is written after so long if there is anything new; 0 turns the clock off.",
)
METADATA_MAX_IDLE_INTERVAL_MS = Setting(
    "metadata.max.idle.interval.ms",
    INT,
    default=500,
    at_least=0,
    importance=Importance.LOW,
    implemented=False,
    doc="How often the idle leader of the quorum writes an empty record; 0 for never.",
)
INTERNAL_METADATA_LOG_SEGMENT_BYTES = Setting(
    "internal.metadata.log.segment.bytes",
    INT.optional,
    default=None,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="Segment size of the metadata log in tests.",
)
INTERNAL_METADATA_MAX_BATCH_SIZE_IN_BYTES = Setting(
    "internal.metadata.max.batch.size.in.bytes",
    INT,
    default=8 * MIB,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="The largest batch in the metadata log.",
)
INTERNAL_METADATA_DELETE_DELAY_MILLIS = Setting(
    "internal.metadata.delete.delay.millis",
    LONG,
    default=MINUTE_MS,
    importance=Importance.LOW,
    internal=True,
    implemented=False,
    doc="How long a deleted file of the metadata log stays on disk under another name.",
)
BROKER_HEARTBEAT_INTERVAL_MS = Setting(
    "broker.heartbeat.interval.ms",
    INT,
    default=300,
    simulate=(500, 1_500),
    differs="Kafka's 2 s belong to its longer session.",
    doc="How often a broker tells the controller that it lives.",
)
BROKER_SESSION_TIMEOUT_MS = Setting(
    "broker.session.timeout.ms",
    INT,
    default=1_500,
    simulate=(1_500, 9_000),
    differs="Kafka waits 9 s. Here a thread speaks for a broker that is busy, so that silence means more (ADR 15).",
    doc="A broker that was silent for so long is fenced.",
)
INITIAL_BROKER_REGISTRATION_TIMEOUT_MS = Setting(
    "initial.broker.registration.timeout.ms",
    INT,
    default=MINUTE_MS,
    doc="How long a starting broker tries to register before it gives up.",
)
SERVER_MAX_STARTUP_TIME_MS = Setting(
    "server.max.startup.time.ms",
    LONG,
    default=LONG_MAX,
    at_least=0,
    internal=True,
    implemented=False,
    doc="A start that takes longer is given up.",
)
CONTROLLED_SHUTDOWN_ENABLE = Setting(
    "controlled.shutdown.enable",
    BOOLEAN,
    default=True,
    doc="Whether a stopping broker first hands its leaderships over.",
)
AUTO_LEADER_REBALANCE_ENABLE = Setting(
    "auto.leader.rebalance.enable",
    BOOLEAN,
    default=True,
    importance=Importance.HIGH,
    doc="Whether leadership goes back to the preferred replicas from time to time.",
)
LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS = Setting(
    "leader.imbalance.check.interval.seconds",
    LONG,
    default=300,
    at_least=1,
    importance=Importance.HIGH,
    doc="How often the controller looks for leaderships to move back.",
)
UNCLEAN_LEADER_ELECTION_INTERVAL_MS = Setting(
    "unclean.leader.election.interval.ms",
    LONG,
    default=5 * MINUTE_MS,
    at_least=1,
    internal=True,
    doc="How often the controller looks for partitions that need an unclean election.",
)
UNSTABLE_API_VERSIONS_ENABLE = Setting(
    "unstable.api.versions.enable",
    BOOLEAN,
    default=False,
    importance=Importance.HIGH,
    internal=True,
    implemented=False,
    doc="Whether versions of APIs that may still change are offered.",
)
UNSTABLE_FEATURE_VERSIONS_ENABLE = Setting(
    "unstable.feature.versions.enable",
    BOOLEAN,
    default=False,
    importance=Importance.HIGH,
    internal=True,
    implemented=False,
    doc="Whether feature levels that may still change can be chosen.",
)
