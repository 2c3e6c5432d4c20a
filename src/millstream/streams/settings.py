"""The settings of an application, under Kafka Streams' names.

Each is declared once, with what it does here. A name that nobody knows is refused with the one that was probably meant;
a name that Kafka Streams knows and that has no meaning on Spark is accepted and said in the log, so a file of settings
can be taken over. Names of the clients' own settings (TLS, logins, time-outs) go to the client.
"""

from __future__ import annotations

import logging
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from millstream.client.options import Options
from millstream.records.codecs import Codec
from millstream.streams.plan.names import LEGAL, is_legal, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger("millstream.streams")

AVAILABLE_NOW: Final = "available_now"
# The intervals that Spark takes for a trigger; months and years it does not.
_INTERVAL: Final = re.compile(
    r"(?:interval\s+)?(?:\+?\d+(?:\.\d+)?\s+(?:microsecond|millisecond|second|minute|hour|day|week)s?\s*)+",
    re.IGNORECASE,
)
Guarantee = Literal["exactly_once_v2", "at_least_once"]

# Name -> what it does.
KNOWN: Final = {
    "application.id": "prefix of internal topics, name of the consumer group",
    "bootstrap.servers": "where the cluster is",
    "processing.guarantee": "exactly_once_v2 (exactly_once is its old name) or at_least_once",
    "auto.offset.reset": "where a topic is read from that has no committed offset: earliest or latest",
    "commit.interval.ms": "time between micro-batches; without it one follows the other",
    "max.offsets.per.trigger": "about as many records in a micro-batch, of each sub-topology",
    "direct.records.max": "a micro-batch of at most so many records is worked off by the driver, without Spark's jobs",
    "state.dir": "folder for Spark's checkpoints; its loss costs no record, places and state are in topics",
    "replication.factor": "of internal topics; -1 is the cluster's default",
    "repartition.purge.interval.ms": "how often what was read is deleted from repartition topics",
    "transaction.timeout.ms": "how long a micro-batch may take",
    "compression.type": "of what is written",
}
# Kafka Streams knows them, and they have nothing to do here: Spark schedules, and keeps no stores on disk.
WITHOUT_EFFECT: Final = (
    "acceptable.recovery.lag",
    "allow.os.group.write.access",
    "application.server",
    "buffered.records.per.partition",
    "built.in.metrics.version",
    "cache.max.bytes.buffering",
    "client.id",
    "connections.max.idle.ms",
    "default.client.supplier",
    "default.dsl.store",
    "dsl.store.format",
    "dsl.store.suppliers.class",
    "enable.metrics.push",
    "ensure.explicit.internal.resource.naming",
    "group.protocol",
    "log.summary.interval.ms",
    "max.task.idle.ms",
    "max.warmup.replicas",
    "metadata.max.age.ms",
    "metadata.recovery.rebootstrap.trigger.ms",
    "metadata.recovery.strategy",
    "metric.reporters",
    "metrics.num.samples",
    "metrics.recording.level",
    "metrics.sample.window.ms",
    "num.standby.replicas",
    "num.stream.threads",
    "poll.ms",
    "probing.rebalance.interval.ms",
    "processor.wrapper.class",
    "rack.aware.assignment.non_overlap_cost",
    "rack.aware.assignment.strategy",
    "rack.aware.assignment.tags",
    "rack.aware.assignment.traffic_cost",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "retries",
    "rocksdb.config.setter",
    "send.buffer.bytes",
    "state.cleanup.delay.ms",
    "state.cleanup.dir.max.age.ms",
    "statestore.cache.max.bytes",
    "task.assignor.class",
    "task.timeout.ms",
    "topology.optimization",
    "upgrade.from",
)
# Serdes and handlers stand in the topology here, and a wrong guess would change results.
REFUSED: Final = {
    "default.key.serde": "say it where the stream is made, or as StreamsBuilder(key=...)",
    "default.value.serde": "say it where the stream is made, or as StreamsBuilder(value=...)",
    "default.timestamp.extractor": "say it where the stream is made, as timestamp_of=",
    "deserialization.exception.handler": "a record that cannot be read stops the application",
    "production.exception.handler": "a record that cannot be written stops the application",
    "processing.exception.handler": "a record that cannot be processed stops the application",
    "processing.exception.handler.global.enabled": "there is no handler",
    "default.deserialization.exception.handler": "a record that cannot be read stops the application",
    "default.production.exception.handler": "a record that cannot be written stops the application",
    "errors.dead.letter.queue.topic.name": "a record that cannot be processed stops the application",
    "default.list.key.serde.inner": "say it where the stream is made",
    "default.list.key.serde.type": "say it where the stream is made",
    "default.list.value.serde.inner": "say it where the stream is made",
    "default.list.value.serde.type": "say it where the stream is made",
    "windowed.inner.class.serde": "say it where the stream is made, as key=TimeWindowedSerde(...)",
    "window.size.ms": "say it where the stream is made, as key=TimeWindowedSerde(...)",
    "config.providers": "look the values up before",
    "windowstore.changelog.additional.retention.ms": "it is a day; topic.retention.ms is for all internal topics",
}
# A topic's own settings, as millstream.settings declares them for brokers; a client does not know that package.
OF_TOPICS: Final = (
    "cleanup.policy",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.messages",
    "flush.ms",
    "follower.replication.throttled.replicas",
    "index.interval.bytes",
    "internal.segment.bytes",
    "leader.replication.throttled.replicas",
    "local.retention.bytes",
    "local.retention.ms",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "min.insync.replicas",
    "preallocate",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.index.bytes",
    "segment.jitter.ms",
    "segment.ms",
    "unclean.leader.election.enable",
)
_TOPIC_PREFIX: Final = "topic."
_CLIENT_PREFIXES: Final = (
    "main.consumer.",
    "restore.consumer.",
    "global.consumer.",
    "consumer.",
    "producer.",
    "admin.",
)
_COMPRESSIONS: Final = [codec.name.lower() for codec in Codec]
_OLD_NAMES: Final = {"exactly_once": "exactly_once_v2", "exactly_once_beta": "exactly_once_v2"}


class UnknownSetting(ValueError):
    """A setting that nobody knows, or a value that it cannot have."""


@dataclass(frozen=True)
class Settings:
    """An application's settings, checked."""

    application_id: str
    connection: dict[str, str]
    guarantee: Guarantee = "exactly_once_v2"
    reset: Literal["earliest", "latest"] = "earliest"
    interval_ms: int | None = None
    offsets_max: int | None = None
    direct_records_max: int | None = None
    folder: str = ""
    replication_factor: int = -1
    purge_interval_ms: int = 30_000
    transaction_timeout_ms: int = 300_000
    compression: str = "none"
    topic_settings: dict[str, str] = field(default_factory=dict)


def guarantee_of(text: str) -> Guarantee:
    """The guarantee that is meant by a name, also by an old one."""
    found = _OLD_NAMES.get(text, text)
    if found == "exactly_once_v2":
        return "exactly_once_v2"
    if found == "at_least_once":
        return "at_least_once"
    raise UnknownSetting(
        f"processing.guarantee is {text!r}{nearest(text, ['exactly_once_v2', 'at_least_once'])}; "
        "there are 'exactly_once_v2' and 'at_least_once'"
    )


def checked_trigger(text: str | None) -> str | None:
    """When micro-batches come, if Spark will understand it: to hear of a slip after it has started takes long."""
    if text is None or text == AVAILABLE_NOW or (isinstance(text, str) and _INTERVAL.fullmatch(text.strip())):
        return text
    raise UnknownSetting(
        f"trigger is {text!r}: a time between micro-batches such as '1 second' or '500 milliseconds', "
        f"or {AVAILABLE_NOW!r}"
    )


def settings_of(
    application_id: str, servers: str | Mapping[str, str] | None, given: Mapping[str, object] | None
) -> Settings:
    """What was asked for, as a whole; UnknownSetting with a hint if a name or a value is wrong."""
    if not is_legal(application_id):
        raise UnknownSetting(f"an application's id cannot be {application_id!r}: {LEGAL}, as topics are named after it")
    texts = {name: str(value) for name, value in (given or {}).items()}
    connection = _connection(servers)
    own: dict[str, str] = {}
    topics: dict[str, str] = {}
    for name, text in texts.items():
        if name in REFUSED:
            raise UnknownSetting(f"{name} has no place here: {REFUSED[name]}")
        if name in WITHOUT_EFFECT or _is_of_a_client(name):
            log.warning("%s has no effect on Spark", name)
        elif name.startswith(_TOPIC_PREFIX):
            _check_topic_setting(name)
            topics[name.removeprefix(_TOPIC_PREFIX)] = text
        elif name in KNOWN:
            own[name] = text
        else:
            connection[name.removeprefix("kafka.")] = text
    if own.setdefault("application.id", application_id) != application_id:
        raise UnknownSetting(
            f"the application is called {application_id!r}, and application.id {own['application.id']!r}"
        )
    connection.setdefault("bootstrap.servers", own.get("bootstrap.servers", "localhost:9092"))
    _check_names(connection)
    return Settings(
        application_id,
        connection,
        guarantee=guarantee_of(own.get("processing.guarantee", "exactly_once_v2")),
        reset=_reset(own.get("auto.offset.reset", "earliest")),
        interval_ms=_number(own, "commit.interval.ms", at_least=0),
        offsets_max=_number(own, "max.offsets.per.trigger", at_least=1),
        direct_records_max=_number(own, "direct.records.max", at_least=0),
        folder=own.get("state.dir") or str(Path(tempfile.gettempdir()) / "millstream-streams"),
        replication_factor=_replication(own),
        purge_interval_ms=_number(own, "repartition.purge.interval.ms", at_least=1) or 30_000,
        transaction_timeout_ms=_number(own, "transaction.timeout.ms", at_least=1) or 300_000,
        compression=_compression(own.get("compression.type", "none")),
        topic_settings=topics,
    )


def _check_topic_setting(name: str) -> None:
    if name.removeprefix(_TOPIC_PREFIX) not in OF_TOPICS:
        hint = nearest(name, [_TOPIC_PREFIX + known for known in OF_TOPICS])
        raise UnknownSetting(f"there is no setting {name!r} of topics{hint}")


def _is_of_a_client(name: str) -> bool:
    """Kafka Streams has several clients inside; what is said to one of them and has a meaning here is refused."""
    client = next((prefix for prefix in _CLIENT_PREFIXES if name.startswith(prefix)), None)
    if client is None:
        return False
    own = name.removeprefix(client)
    if own in KNOWN:
        raise UnknownSetting(f"{name} has no place here: there is no {client[:-1]} inside. Say {own}")
    return True


def _connection(servers: str | Mapping[str, str] | None) -> dict[str, str]:
    if servers is None:
        return {}
    if isinstance(servers, str):
        return {"bootstrap.servers": servers}
    return {name.removeprefix("kafka."): value for name, value in servers.items()}


def _check_names(connection: Mapping[str, str]) -> None:
    """The client knows its own settings; a name that it does not know was meant for here, or is wrong."""
    for name in Options.parse(connection).unknown:
        raise UnknownSetting(f"there is no setting {name!r}{nearest(name, [*KNOWN, *WITHOUT_EFFECT, *REFUSED])}")


def _reset(text: str) -> Literal["earliest", "latest"]:
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    raise UnknownSetting(f"auto.offset.reset is 'earliest' or 'latest', not {text!r}")


def _compression(text: str) -> str:
    if text not in _COMPRESSIONS:
        hint = nearest(text, _COMPRESSIONS)
        raise UnknownSetting(f"compression.type is {text!r}{hint}; there are {', '.join(_COMPRESSIONS)}")
    return text


def _replication(own: Mapping[str, str]) -> int:
    found = _number(own, "replication.factor", at_least=-1)
    if found == 0:
        raise UnknownSetting("replication.factor is 0: at least 1, or -1 for the cluster's default")
    return -1 if found is None else found


def _number(own: Mapping[str, str], name: str, *, at_least: int) -> int | None:
    if name not in own:
        return None
    try:
        found = int(own[name])
    except ValueError:
        raise UnknownSetting(f"{name} is a number, not {own[name]!r}") from None
    if found < at_least:
        raise UnknownSetting(f"{name} is {found}: at least {at_least}")
    return found
