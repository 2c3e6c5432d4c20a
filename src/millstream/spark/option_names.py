"""The names of all options, and which of them mean what for reads and writes.

They are those of Spark's Kafka source and sink, so that a job moves over by its format's name alone. A misspelt option
that is ignored silently changes what a job does, so unknown names are refused, here even those behind `kafka.`: they
must be settings that Kafka's clients have. Of these many only tune Java's client, and are accepted without effect.
"""

from __future__ import annotations

from typing import Final

from millstream.spark.formats import OPTIONS as FORMAT_OPTIONS

BOOTSTRAP: Final = "kafka.bootstrap.servers"
PREFIX: Final = "kafka."

# What a query may say for either direction.
_SHARED: Final = ("includeHeaders",)

READ_OPTIONS: Final = (
    *_SHARED,
    *FORMAT_OPTIONS,
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "startingOffsetsByTimestampStrategy",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)

WRITE_OPTIONS: Final = (*_SHARED, "topic")

# Spark hands these to sources along with the user's own.
SPARKS_OWN: Final = ("checkpointLocation", "queryName", "outputMode")

# Settings of Kafka's clients that the client here understands; what begins with ssl. or sasl. it judges itself.
CONNECTION: Final = (
    "bootstrap.servers",
    "client.id",
    "security.protocol",
    "sasl.mechanism",
    "sasl.mechanisms",
    "sasl.jaas.config",
    "sasl.username",
    "sasl.password",
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.key.password",
    "ssl.truststore.location",
    "ssl.endpoint.identification.algorithm",
    "enable.ssl.certificate.verification",
    "request.timeout.ms",
    "default.api.timeout.ms",
    "socket.timeout.ms",
    "socket.connection.setup.timeout.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "metadata.max.age.ms",
    "receive.message.max.bytes",
)

# Settings with a meaning for reads or writes, see options.py.
MEANINGFUL: Final = (
    "isolation.level",
    "check.crcs",
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "acks",
    "compression.type",
    "batch.size",
    "delivery.timeout.ms",
    "partitioner.ignore.keys",
)

# They tune a Java client, or concern its membership in a group, which a reader here never joins.
WITHOUT_EFFECT: Final = (
    "allow.auto.create.topics",
    "auto.commit.interval.ms",
    "auto.include.jmx.reporter",
    "buffer.memory",
    "client.dns.lookup",
    "client.rack",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.zstd.level",
    "connections.max.idle.ms",
    "enable.idempotence",
    "enable.metrics.push",
    "exclude.internal.topics",
    "fetch.max.wait.ms",
    "fetch.min.bytes",
    "group.id",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.poll.interval.ms",
    "max.poll.records",
    "max.request.size",
    "metadata.max.idle.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "partition.assignment.strategy",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retries",
    "send.buffer.bytes",
    "session.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "transaction.timeout.ms",
)

_BYTES_ONLY: Final = "keys and values are bytes; convert them with columns"
_NO_JAVA: Final = "classes of a Java client cannot run here"

# What would be wrong to ignore, with what to do instead.
REFUSED_FOR_READS: Final = {
    "auto.offset.reset": "say where to start with startingOffsets",
    "enable.auto.commit": "Spark keeps the offsets of a query in its checkpoint",
    "key.deserializer": _BYTES_ONLY,
    "value.deserializer": _BYTES_ONLY,
    "interceptor.classes": _NO_JAVA,
}
REFUSED_FOR_WRITES: Final = {
    "key.serializer": _BYTES_ONLY,
    "value.serializer": _BYTES_ONLY,
    "interceptor.classes": _NO_JAVA,
    "partitioner.class": f"{_NO_JAVA}; a column 'partition' says where a row goes",
    "transactional.id": "millstream.spark.start(..., guarantee='exactly_once') writes in transactions",
}
