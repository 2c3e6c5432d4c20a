"""The settings of a group and of a client-metrics subscription: what IncrementalAlterConfigs can set on them."""

from __future__ import annotations

from millstream.settings import rules
from millstream.settings.declare import Scope, Setting
from millstream.settings.groups import (
    GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS,
    GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_SESSION_TIMEOUT_MS,
    GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS,
    GROUP_STREAMS_HEARTBEAT_INTERVAL_MS,
    GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS,
    GROUP_STREAMS_NUM_STANDBY_REPLICAS,
    GROUP_STREAMS_SESSION_TIMEOUT_MS,
)
from millstream.settings.kinds import BOOLEAN, INT, LIST, MINUTE_MS, STRING
from millstream.settings.share import (
    GROUP_SHARE_ASSIGNMENT_INTERVAL_MS,
    GROUP_SHARE_DELIVERY_COUNT_LIMIT,
    GROUP_SHARE_HEARTBEAT_INTERVAL_MS,
    GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS,
    GROUP_SHARE_RECORD_LOCK_DURATION_MS,
    GROUP_SHARE_SESSION_TIMEOUT_MS,
)

CONSUMER_ASSIGNMENT_INTERVAL_MS = Setting(
    "consumer.assignment.interval.ms",
    INT,
    default=1_000,
    scope=Scope.GROUP,
    at_least=0,
    synonyms=(GROUP_CONSUMER_ASSIGNMENT_INTERVAL_MS,),
    doc="The least time between two assignments of this consumer group.",
)
CONSUMER_HEARTBEAT_INTERVAL_MS = Setting(
    "consumer.heartbeat.interval.ms",
    INT,
    default=5_000,
    scope=Scope.GROUP,
    at_least=1,
    synonyms=(GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS,),
    doc="How often a member of this consumer group sends a heartbeat.",
)
CONSUMER_SESSION_TIMEOUT_MS = Setting(
    "consumer.session.timeout.ms",
    INT,
    default=45_000,
    scope=Scope.GROUP,
    at_least=1,
    synonyms=(GROUP_CONSUMER_SESSION_TIMEOUT_MS,),
    doc="A member of this consumer group that was silent for so long is removed.",
)
SHARE_ASSIGNMENT_INTERVAL_MS = Setting(
    "share.assignment.interval.ms",
    INT,
    default=1_000,
    scope=Scope.GROUP,
    at_least=0,
    synonyms=(GROUP_SHARE_ASSIGNMENT_INTERVAL_MS,),
    implemented=False,
    doc="The least time between two assignments of this share group.",
)
SHARE_AUTO_OFFSET_RESET = Setting(
    "share.auto.offset.reset",
    STRING,
    default="latest",
    scope=Scope.GROUP,
    check=rules.share_offset_reset,
    implemented=False,
    doc="Where this share group starts: latest, earliest, or by_duration and an ISO 8601 duration.",
)
SHARE_DELIVERY_COUNT_LIMIT = Setting(
    "share.delivery.count.limit",
    INT,
    default=5,
    scope=Scope.GROUP,
    at_least=2,
    synonyms=(GROUP_SHARE_DELIVERY_COUNT_LIMIT,),
    implemented=False,
    doc="How often a record is delivered in this share group before it is given up.",
)
SHARE_HEARTBEAT_INTERVAL_MS = Setting(
    "share.heartbeat.interval.ms",
    INT,
    default=5_000,
    scope=Scope.GROUP,
    at_least=1,
    synonyms=(GROUP_SHARE_HEARTBEAT_INTERVAL_MS,),
    implemented=False,
    doc="How often a member of this share group sends a heartbeat.",
)
SHARE_ISOLATION_LEVEL = Setting(
    "share.isolation.level",
    STRING,
    default="read_uncommitted",
    scope=Scope.GROUP,
    one_of=("read_committed", "read_uncommitted"),
    implemented=False,
    doc="Whether this share group sees records of open and aborted transactions.",
)
SHARE_PARTITION_MAX_RECORD_LOCKS = Setting(
    "share.partition.max.record.locks",
    INT,
    default=2_000,
    scope=Scope.GROUP,
    at_least=100,
    synonyms=(GROUP_SHARE_PARTITION_MAX_RECORD_LOCKS,),
    implemented=False,
    doc="The most records of a partition that this share group reserves at once.",
)
SHARE_RECORD_LOCK_DURATION_MS = Setting(
    "share.record.lock.duration.ms",
    INT,
    default=30_000,
    scope=Scope.GROUP,
    at_least=1_000,
    synonyms=(GROUP_SHARE_RECORD_LOCK_DURATION_MS,),
    implemented=False,
    doc="How long a record is reserved for the member of this share group that fetched it.",
)
SHARE_RENEW_ACKNOWLEDGE_ENABLE = Setting(
    "share.renew.acknowledge.enable",
    BOOLEAN,
    default=True,
    scope=Scope.GROUP,
    implemented=False,
    doc="Whether a member of this share group may renew its reservation.",
)
SHARE_SESSION_TIMEOUT_MS = Setting(
    "share.session.timeout.ms",
    INT,
    default=45_000,
    scope=Scope.GROUP,
    at_least=1,
    synonyms=(GROUP_SHARE_SESSION_TIMEOUT_MS,),
    implemented=False,
    doc="A member of this share group that was silent for so long is removed.",
)
STREAMS_ASSIGNMENT_INTERVAL_MS = Setting(
    "streams.assignment.interval.ms",
    INT,
    default=1_000,
    scope=Scope.GROUP,
    at_least=0,
    synonyms=(GROUP_STREAMS_ASSIGNMENT_INTERVAL_MS,),
    implemented=False,
    doc="The least time between two assignments of this streams group.",
)
STREAMS_HEARTBEAT_INTERVAL_MS = Setting(
    "streams.heartbeat.interval.ms",
    INT,
    default=5_000,
    scope=Scope.GROUP,
    at_least=1,
    synonyms=(GROUP_STREAMS_HEARTBEAT_INTERVAL_MS,),
    implemented=False,
    doc="How often a member of this streams group sends a heartbeat.",
)
STREAMS_INITIAL_REBALANCE_DELAY_MS = Setting(
    "streams.initial.rebalance.delay.ms",
    INT,
    default=3_000,
    scope=Scope.GROUP,
    at_least=0,
    synonyms=(GROUP_STREAMS_INITIAL_REBALANCE_DELAY_MS,),
    implemented=False,
    doc="How long this streams group waits, while empty, for more members.",
)
STREAMS_NUM_STANDBY_REPLICAS = Setting(
    "streams.num.standby.replicas",
    INT,
    default=0,
    scope=Scope.GROUP,
    at_least=0,
    synonyms=(GROUP_STREAMS_NUM_STANDBY_REPLICAS,),
    implemented=False,
    doc="The standby copies of each task of this streams group.",
)
STREAMS_SESSION_TIMEOUT_MS = Setting(
    "streams.session.timeout.ms",
    INT,
    default=45_000,
    scope=Scope.GROUP,
    at_least=1,
    synonyms=(GROUP_STREAMS_SESSION_TIMEOUT_MS,),
    implemented=False,
    doc="A member of this streams group that was silent for so long is removed.",
)
CLIENT_METRICS_INTERVAL_MS = Setting(
    "interval.ms",
    INT,
    default=5 * MINUTE_MS,
    scope=Scope.CLIENT_METRICS,
    implemented=False,
    doc="How often clients push the subscribed metrics.",
)
CLIENT_METRICS_MATCH = Setting(
    "match",
    LIST,
    default=(),
    scope=Scope.CLIENT_METRICS,
    implemented=False,
    doc="Which clients are meant, as key=pattern.",
)
CLIENT_METRICS_METRICS = Setting(
    "metrics",
    LIST,
    default=(),
    scope=Scope.CLIENT_METRICS,
    implemented=False,
    doc="The prefixes of the metrics that clients push; * for all.",
)
