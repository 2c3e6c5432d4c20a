"""Quotas and metrics. Prometheus metrics come with `--metrics`; Java's reporters do not apply."""

from __future__ import annotations

from millstream.settings.declare import IfIgnored, Importance, Live, Setting
from millstream.settings.kinds import CLASS, INT, LIST, LONG, MIB, STRING

CLIENT_QUOTA_CALLBACK_CLASS = Setting(
    "client.quota.callback.class",
    CLASS.optional,
    default=None,
    importance=Importance.LOW,
    implemented=False,
    if_ignored=IfIgnored.UNSAFE,
    doc="A class that decides quotas.",
)
QUOTA_WINDOW_NUM = Setting(
    "quota.window.num",
    INT,
    default=11,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The samples that client quotas are measured over.",
)
QUOTA_WINDOW_SIZE_SECONDS = Setting(
    "quota.window.size.seconds",
    INT,
    default=1,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The length of a sample of client quotas.",
)
CONTROLLER_QUOTA_WINDOW_NUM = Setting(
    "controller.quota.window.num",
    INT,
    default=11,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The samples that the quota on topic changes is measured over.",
)
CONTROLLER_QUOTA_WINDOW_SIZE_SECONDS = Setting(
    "controller.quota.window.size.seconds",
    INT,
    default=1,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The length of a sample of the quota on topic changes.",
)
REPLICATION_QUOTA_WINDOW_NUM = Setting(
    "replication.quota.window.num",
    INT,
    default=11,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The samples that the replication quota is measured over.",
)
REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = Setting(
    "replication.quota.window.size.seconds",
    INT,
    default=1,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The length of a sample of the replication quota.",
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_NUM = Setting(
    "alter.log.dirs.replication.quota.window.num",
    INT,
    default=11,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The samples that the quota on moves between directories is measured over.",
)
ALTER_LOG_DIRS_REPLICATION_QUOTA_WINDOW_SIZE_SECONDS = Setting(
    "alter.log.dirs.replication.quota.window.size.seconds",
    INT,
    default=1,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The length of a sample of the quota on moves between directories.",
)
KAFKA_METRICS_POLLING_INTERVAL_SECS = Setting(
    "kafka.metrics.polling.interval.secs",
    INT,
    default=10,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="How often Apache Kafka's older reporters look.",
)
KAFKA_METRICS_REPORTERS = Setting(
    "kafka.metrics.reporters",
    LIST,
    default=(),
    importance=Importance.LOW,
    implemented=False,
    doc="Apache Kafka's older reporters of metrics, by class.",
)
METRIC_REPORTERS = Setting(
    "metric.reporters",
    LIST,
    default=("org.apache.kafka.common.metrics.JmxReporter",),
    live=Live.CLUSTER_WIDE,
    importance=Importance.LOW,
    implemented=False,
    doc="Java classes that report metrics.",
)
METRICS_NUM_SAMPLES = Setting(
    "metrics.num.samples",
    INT,
    default=2,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The samples that a metric is measured over.",
)
METRICS_RECORDING_LEVEL = Setting(
    "metrics.recording.level",
    STRING,
    default="INFO",
    importance=Importance.LOW,
    implemented=False,
    doc="The level of detail of Apache Kafka's metrics.",
)
METRICS_SAMPLE_WINDOW_MS = Setting(
    "metrics.sample.window.ms",
    LONG,
    default=30_000,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The length of a sample of a metric.",
)
TELEMETRY_MAX_BYTES = Setting(
    "telemetry.max.bytes",
    INT,
    default=MIB,
    at_least=1,
    importance=Importance.LOW,
    implemented=False,
    doc="The largest push of metrics by a client.",
)
