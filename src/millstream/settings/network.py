"""Listeners, sockets, connections, and the limits on what a client may ask of the broker at once."""

from __future__ import annotations

from millstream.settings.declare import Importance, Live, Setting
from millstream.settings.kinds import INT, INT_MAX, KIB, LIST, LONG, MIB, MINUTE_MS, STRING

LISTENERS = Setting(
    "listeners",
    LIST,
    default=("PLAINTEXT://:9092",),
    live=Live.PER_BROKER,
    empty=False,
    importance=Importance.HIGH,
    doc="Where the broker listens, as NAME://host:port; an empty host means every interface.",
)
ADVERTISED_LISTENERS = Setting(
    "advertised.listeners",
    LIST.optional,
    default=None,
    empty=False,
    importance=Importance.HIGH,
    doc="The addresses that clients are told; if not set, each client is told the address it dialled.",
)
LISTENER_SECURITY_PROTOCOL_MAP = Setting(
    "listener.security.protocol.map",
    STRING,
    default="SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    live=Live.PER_BROKER,
    importance=Importance.LOW,
    doc="The security protocol of each listener name, as NAME:PROTOCOL.",
)
INTER_BROKER_LISTENER_NAME = Setting(
    "inter.broker.listener.name", STRING.optional, default=None, doc="The listener that brokers use among themselves."
)
CONTROLLER_LISTENER_NAMES = Setting(
    "controller.listener.names",
    LIST,
    default=("CONTROLLER",),
    empty=False,
    importance=Importance.HIGH,
    differs="Kafka has no default; this is the name that its own examples use.",
    doc="The listeners that speak the controller's protocol.",
)
SECURITY_INTER_BROKER_PROTOCOL = Setting(
    "security.inter.broker.protocol",
    STRING,
    default="PLAINTEXT",
    one_of=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    doc="The security protocol between brokers; inter.broker.listener.name says it better.",
)
EARLY_START_LISTENERS = Setting(
    "early.start.listeners",
    LIST.optional,
    default=None,
    importance=Importance.HIGH,
    implemented=False,
    doc="Listeners that open before the broker has caught up with the metadata.",
)
SOCKET_SEND_BUFFER_BYTES = Setting(
    "socket.send.buffer.bytes",
    INT,
    default=100 * KIB,
    importance=Importance.HIGH,
    implemented=False,
    doc="The kernel's send buffer of a client socket; -1 leaves it to the system.",
)
SOCKET_RECEIVE_BUFFER_BYTES = Setting(
    "socket.receive.buffer.bytes",
    INT,
    default=100 * KIB,
    importance=Importance.HIGH,
    implemented=False,
    doc="The kernel's receive buffer of a client socket; -1 leaves it to the system.",
)
SOCKET_REQUEST_MAX_BYTES = Setting(
    "socket.request.max.bytes",
    INT,
    default=100 * MIB,
    at_least=1,
    importance=Importance.HIGH,
    doc="The largest request; a longer one costs the client its connection before memory is taken.",
)
SOCKET_LISTEN_BACKLOG_SIZE = Setting(
    "socket.listen.backlog.size",
    INT,
    default=50,
    at_least=1,
    implemented=False,
    doc="How many connections may wait to be accepted.",
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MS = Setting(
    "socket.connection.setup.timeout.ms",
    LONG,
    default=10_000,
    implemented=False,
    doc="How long a first attempt to connect to another node may take.",
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS = Setting(
    "socket.connection.setup.timeout.max.ms",
    LONG,
    default=30_000,
    implemented=False,
    doc="The longest that repeated attempts to connect may grow to.",
)
MAX_CONNECTIONS = Setting(
    "max.connections",
    INT,
    default=10_000,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    differs="Kafka has no limit; here every limit is finite.",
    doc="The most connections at once; more are closed as they come.",
)
MAX_CONNECTIONS_PER_IP = Setting(
    "max.connections.per.ip",
    INT,
    default=INT_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    doc="The most connections at once from one address.",
)
MAX_CONNECTIONS_PER_IP_OVERRIDES = Setting(
    "max.connections.per.ip.overrides",
    STRING,
    default="",
    live=Live.CLUSTER_WIDE,
    doc="Other limits for single addresses, as host:count.",
)
MAX_CONNECTION_CREATION_RATE = Setting(
    "max.connection.creation.rate",
    INT,
    default=INT_MAX,
    live=Live.CLUSTER_WIDE,
    at_least=0,
    implemented=False,
    doc="The most new connections per second.",
)
CONNECTIONS_MAX_IDLE_MS = Setting(
    "connections.max.idle.ms", LONG, default=10 * MINUTE_MS, doc="A connection without traffic for so long is closed."
)
CONNECTION_FAILED_AUTHENTICATION_DELAY_MS = Setting(
    "connection.failed.authentication.delay.ms",
    INT,
    default=100,
    at_least=0,
    importance=Importance.LOW,
    implemented=False,
    doc="How long the answer to a failed login is held back.",
)
QUEUED_MAX_REQUESTS = Setting(
    "queued.max.requests",
    INT,
    default=500,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="The most requests that wait for the broker before it stops reading.",
)
QUEUED_MAX_REQUEST_BYTES = Setting(
    "queued.max.request.bytes",
    LONG,
    default=256 * MIB,
    differs="Kafka has no limit; here every limit is finite.",
    doc="The most bytes of waiting requests in all before the broker stops reading.",
)
NUM_NETWORK_THREADS = Setting(
    "num.network.threads",
    INT,
    default=3,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="Apache Kafka's network threads. Millstream has one event loop.",
)
NUM_IO_THREADS = Setting(
    "num.io.threads",
    INT,
    default=8,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="Apache Kafka's request threads. Millstream has one event loop.",
)
BACKGROUND_THREADS = Setting(
    "background.threads",
    INT,
    default=10,
    live=Live.CLUSTER_WIDE,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="Apache Kafka's threads for background work.",
)
REQUEST_TIMEOUT_MS = Setting(
    "request.timeout.ms",
    INT,
    default=30_000,
    importance=Importance.HIGH,
    doc="How long a transaction's coordinator waits for the replicas of what it wrote before it says that it is not "
    "available.",
)
FETCH_MAX_BYTES = Setting(
    "fetch.max.bytes", INT, default=55 * MIB, at_least=KIB, doc="The most bytes in one answer to a fetch."
)
MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS = Setting(
    "max.incremental.fetch.session.cache.slots",
    INT,
    default=1_000,
    at_least=0,
    simulate=(0, 2, 1_000),
    doc="How many incremental fetch sessions are kept.",
)
FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS = Setting(
    "fetch.purgatory.purge.interval.requests",
    INT,
    default=1_000,
    implemented=False,
    doc="Bookkeeping of Apache Kafka's waiting fetches.",
)
PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS = Setting(
    "producer.purgatory.purge.interval.requests",
    INT,
    default=1_000,
    implemented=False,
    doc="Bookkeeping of Apache Kafka's waiting produce requests.",
)
DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS = Setting(
    "delete.records.purgatory.purge.interval.requests",
    INT,
    default=1,
    implemented=False,
    doc="Bookkeeping of Apache Kafka's waiting DeleteRecords.",
)
SHARE_FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS = Setting(
    "share.fetch.purgatory.purge.interval.requests",
    INT,
    default=1_000,
    implemented=False,
    doc="Bookkeeping of Apache Kafka's waiting share fetches.",
)
MAX_REQUEST_PARTITION_SIZE_LIMIT = Setting(
    "max.request.partition.size.limit",
    INT,
    default=2_000,
    at_least=1,
    doc="The most partitions in one answer of DescribeTopicPartitions.",
)
