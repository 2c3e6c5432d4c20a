"""The transaction coordinator."""

from __future__ import annotations

from millstream.settings.declare import Importance, Live, Setting
from millstream.settings.kinds import BOOLEAN, DAY_MS, HOUR_MS, INT, MIB, MINUTE_MS, SHORT

ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MS = Setting(
    "add.partitions.to.txn.retry.backoff.ms",
    INT,
    default=20,
    at_least=1,
    importance=Importance.HIGH,
    doc="The first pause before a partition leader asks the coordinator again.",
)
ADD_PARTITIONS_TO_TXN_RETRY_BACKOFF_MAX_MS = Setting(
    "add.partitions.to.txn.retry.backoff.max.ms",
    INT,
    default=100,
    at_least=0,
    importance=Importance.HIGH,
    doc="How long a partition leader keeps asking the coordinator.",
)
TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS = Setting(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    INT,
    default=10_000,
    at_least=1,
    importance=Importance.LOW,
    doc="How often transactions that took too long are looked for.",
)
TRANSACTION_MAX_TIMEOUT_MS = Setting(
    "transaction.max.timeout.ms",
    INT,
    default=15 * MINUTE_MS,
    at_least=1,
    importance=Importance.HIGH,
    doc="The longest timeout that a producer may ask for.",
)
TRANSACTION_PARTITION_VERIFICATION_ENABLE = Setting(
    "transaction.partition.verification.enable",
    BOOLEAN,
    default=True,
    live=Live.CLUSTER_WIDE,
    importance=Importance.LOW,
    doc="Whether a partition leader asks the coordinator before it takes a transaction's first record.",
)
TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS = Setting(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    INT,
    default=HOUR_MS,
    at_least=1,
    importance=Importance.LOW,
    doc="How often unused transactional ids are looked for.",
)
TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE = Setting(
    "transaction.state.log.load.buffer.size",
    INT,
    default=5 * MIB,
    at_least=1,
    importance=Importance.HIGH,
    implemented=False,
    doc="How much is read at once when a coordinator loads its transactions.",
)
TRANSACTION_STATE_LOG_MIN_ISR = Setting(
    "transaction.state.log.min.isr",
    INT,
    default=2,
    at_least=1,
    importance=Importance.HIGH,
    doc="How many replicas must have a record of the transaction topic.",
)
TRANSACTION_STATE_LOG_NUM_PARTITIONS = Setting(
    "transaction.state.log.num.partitions",
    INT,
    default=50,
    at_least=1,
    importance=Importance.HIGH,
    doc="The partitions of the transaction topic; must not change once it exists.",
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR = Setting(
    "transaction.state.log.replication.factor",
    SHORT,
    default=3,
    at_least=1,
    importance=Importance.HIGH,
    doc="The replicas of the transaction topic.",
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES = Setting(
    "transaction.state.log.segment.bytes",
    INT,
    default=100 * MIB,
    at_least=1,
    importance=Importance.HIGH,
    doc="The segment size of the transaction topic.",
)
TRANSACTION_TWO_PHASE_COMMIT_ENABLE = Setting(
    "transaction.two.phase.commit.enable",
    BOOLEAN,
    default=False,
    importance=Importance.LOW,
    implemented=False,
    doc="Whether a producer may leave a transaction open for another system to decide (KIP-939).",
)
TRANSACTIONAL_ID_EXPIRATION_MS = Setting(
    "transactional.id.expiration.ms",
    INT,
    default=7 * DAY_MS,
    at_least=1,
    importance=Importance.HIGH,
    doc="A transactional id without any use for so long is forgotten.",
)
