"""Millstream's own settings. Apache Kafka does not know them.

They are not live on purpose: a live one would be a ConfigRecord in the metadata log, and Apache Kafka, started on
the same directory, would refuse every later change beside a name that it does not know.
"""

from __future__ import annotations

from millstream.settings.declare import Importance, Setting
from millstream.settings.kinds import BOOLEAN, INT, LONG, MIB, STRING

MILLSTREAM_RECORD_VALIDATION = Setting(
    "millstream.record.validation",
    STRING,
    default="full",
    one_of=("full", "header"),
    importance=Importance.HIGH,
    simulate=("full", "header"),
    doc="Whether every record of a batch is checked, as in Apache Kafka, or only the batch's header and CRC.",
)
MILLSTREAM_ACKS_FSYNC = Setting(
    "millstream.acks.fsync",
    BOOLEAN,
    default=False,
    importance=Importance.HIGH,
    simulate=(False, True),
    doc="Whether acks=all is answered only after the records are on disk; waiting requests share one fsync.",
)
MILLSTREAM_INSECURE = Setting(
    "millstream.insecure",
    BOOLEAN,
    default=False,
    doc="Whether a directory that holds ACLs, users or quotas is opened although they are not enforced.",
)
MILLSTREAM_CONNECTION_QUEUED_BYTES_MAX = Setting(
    "millstream.connection.queued.bytes.max",
    LONG,
    default=32 * MIB,
    at_least=1,
    simulate=(1_000, 32 * MIB),
    doc="The bytes of one connection's waiting requests beyond which nothing more is read from it.",
)
MILLSTREAM_CONNECTION_UNSENT_BYTES_MAX = Setting(
    "millstream.connection.unsent.bytes.max",
    LONG,
    default=MIB,
    at_least=1,
    simulate=(1_000, MIB),
    doc="The bytes of one connection's unsent answers beyond which nothing more is read from it.",
)
MILLSTREAM_UNSENT_BYTES_MAX = Setting(
    "millstream.unsent.bytes.max",
    LONG,
    default=512 * MIB,
    at_least=1,
    doc="The bytes of all unsent answers beyond which the connections that hold the most are closed.",
)
MILLSTREAM_REQUEST_WITHOUT_RECORDS_BYTES_MAX = Setting(
    "millstream.request.without.records.bytes.max",
    INT,
    default=16 * MIB,
    at_least=1024,
    doc="The largest request other than Produce: decoded, many small fields take thirty times their bytes.",
)
MILLSTREAM_BATCH_RECORDS_MAX = Setting(
    "millstream.batch.records.max",
    INT,
    default=1_000_000,
    at_least=1,
    doc="The most records in one batch.",
)
MILLSTREAM_BATCH_DECOMPRESSED_BYTES_MAX = Setting(
    "millstream.batch.decompressed.bytes.max",
    LONG,
    default=256 * MIB,
    at_least=1,
    doc="The largest size that one batch may decompress to.",
)
MILLSTREAM_BATCH_COMPRESSION_RATIO_MAX = Setting(
    "millstream.batch.compression.ratio.max",
    INT,
    default=1_000,
    at_least=1,
    doc="How many times its compressed size a batch may decompress to, once that is more than 8 MiB.",
)
MILLSTREAM_TOPICS_MAX = Setting(
    "millstream.topics.max",
    INT,
    default=50_000,
    at_least=1,
    doc="The most topics in the cluster.",
)
MILLSTREAM_TOPIC_PARTITIONS_MAX = Setting(
    "millstream.topic.partitions.max",
    INT,
    default=10_000,
    at_least=1,
    doc="The most partitions of one topic.",
)
MILLSTREAM_PARTITIONS_MAX = Setting(
    "millstream.partitions.max",
    INT,
    default=100_000,
    at_least=1,
    doc="The most partitions in the cluster.",
)
