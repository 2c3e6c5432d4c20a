"""Rules between settings: what is right alone and wrong together. Apache Kafka's, in our words.

A rule reads typed values and yields a sentence for each mistake. The same rules hold at the start and for a dynamic
update, which is checked as the settings that it would make.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings import cleaning, cluster, groups, network, replication, storage, topics
from millstream.settings.catalog import BROKER, GROUP, TOPIC
from millstream.settings.declare import IfIgnored, Scope, Setting, SettingsError
from millstream.settings.effective import check_overrides
from millstream.settings.kinds import MIB
from millstream.settings.listeners import Endpoints, bootstrap_servers, connections_per_address, quorum_voters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.settings.effective import Settings

__all__ = ["check_group", "check_together", "check_topic"]


def check_together(settings: Settings) -> None:
    """Raise SettingsError with every sentence of every rule."""
    mistakes = [sentence for rule in _RULES for sentence in rule(settings)]
    try:
        Endpoints.of(settings)
    except SettingsError as error:
        mistakes.extend(error.sentences)
    if mistakes:
        raise SettingsError(*mistakes)


def check_topic(settings: Settings, overrides: Mapping[str, str | None]) -> None:
    """Raise SettingsError unless a topic may have these values on a broker with these settings."""
    check_overrides(Scope.TOPIC, overrides)
    effective = settings.of(Scope.TOPIC, {name: text for name, text in overrides.items() if text is not None})
    mistakes = list(_topic_rules(effective))
    for name in overrides:
        setting = TOPIC[name]
        if setting.if_ignored is IfIgnored.UNSAFE and not setting.implemented and effective[setting] != setting.default:
            mistakes.append(f"{name} is not supported here yet, and ignoring it would not be safe.")
    if mistakes:
        raise SettingsError(*mistakes)


def check_group(settings: Settings, overrides: Mapping[str, str | None]) -> None:
    """Raise SettingsError unless a group may have these values: known, allowed, and between the broker's limits."""
    check_overrides(Scope.GROUP, overrides)
    mistakes = []
    for name, text in overrides.items():
        family, _, rest = name.partition(".")
        value = None if text is None else settings.of(Scope.GROUP, {name: text})[GROUP[name]]
        lowest, highest = BROKER.get(f"group.{family}.min.{rest}"), BROKER.get(f"group.{family}.max.{rest}")
        if name == "streams.num.standby.replicas":
            highest = groups.GROUP_STREAMS_MAX_STANDBY_REPLICAS
        if lowest is not None and value is not None and value < settings[lowest]:
            mistakes.append(f"{name} must be at least {lowest.name} = {settings[lowest]}.")
        if highest is not None and value is not None and value > settings[highest]:
            mistakes.append(f"{name} must be at most {highest.name} = {settings[highest]}.")
    if mistakes:
        raise SettingsError(*mistakes)


def _topic_rules(settings: Settings) -> Iterator[str]:
    shortest, longest = settings[topics.MIN_COMPACTION_LAG_MS], settings[topics.MAX_COMPACTION_LAG_MS]
    if shortest > longest:
        yield f"min.compaction.lag.ms = {shortest} must not be more than max.compaction.lag.ms = {longest}."
    for local, whole in (
        (topics.LOCAL_RETENTION_MS, topics.RETENTION_MS),
        (topics.LOCAL_RETENTION_BYTES, topics.RETENTION_BYTES),
    ):
        part, limit = settings[local], settings[whole]
        if limit != -1 and part != -2 and (part == -1 or part > limit):
            yield f"{local.name} = {part} must not be more than {whole.name} = {limit}."


def _log_rules(settings: Settings) -> Iterator[str]:
    retention_ms = settings[topics.RETENTION_MS]
    if retention_ms == 0 or retention_ms < -1:
        yield "log.retention.ms (or minutes, or hours) must be -1, for ever, or at least 1."
    if settings[topics.SEGMENT_MS] < 1:
        yield "log.roll.ms must be at least 1."
    if settings[topics.SEGMENT_JITTER_MS] < 0:
        yield "log.roll.jitter.ms must be at least 0."
    threads, buffer = settings[cleaning.LOG_CLEANER_THREADS], settings[cleaning.LOG_CLEANER_DEDUPE_BUFFER_SIZE]
    if settings[cleaning.LOG_CLEANER_ENABLE] and threads and buffer // threads <= MIB:
        yield "log.cleaner.dedupe.buffer.size must be more than 1 MiB for each of log.cleaner.threads."
    cordoned = settings[storage.CORDONED_LOG_DIRS]
    if "*" in cordoned and len(cordoned) > 1:
        yield "cordoned.log.dirs is either * or a list of directories."


def _connection_rules(settings: Settings) -> Iterator[str]:
    queued, largest = settings[network.QUEUED_MAX_REQUEST_BYTES], settings[network.SOCKET_REQUEST_MAX_BYTES]
    if 0 < queued < largest:
        yield f"queued.max.request.bytes = {queued} must not be less than socket.request.max.bytes = {largest}."
    overrides = settings[network.MAX_CONNECTIONS_PER_IP_OVERRIDES]
    if settings[network.MAX_CONNECTIONS_PER_IP] == 0 and not overrides:
        yield "max.connections.per.ip can be 0 only with exceptions in max.connections.per.ip.overrides."
    try:
        connections_per_address(settings)
    except SettingsError as error:
        yield from error.sentences


def _replication_rules(settings: Settings) -> Iterator[str]:
    selector = settings[replication.REPLICA_SELECTOR_CLASS]
    # Classes of others cannot be run here; Kafka, too, stops where it does not find the class.
    if selector is not None and selector.rpartition(".")[2] not in {"", "LeaderSelector", "RackAwareReplicaSelector"}:
        yield f"replica.selector.class = {selector} must be RackAwareReplicaSelector or LeaderSelector, or not be set."
    wait_ms = settings[replication.REPLICA_FETCH_WAIT_MAX_MS]
    for longer in (replication.REPLICA_SOCKET_TIMEOUT_MS, replication.REPLICA_LAG_TIME_MAX_MS):
        if settings[longer] < wait_ms:
            yield f"{longer.name} = {settings[longer]} must not be less than replica.fetch.wait.max.ms = {wait_ms}."


def _quorum_rules(settings: Settings) -> Iterator[str]:
    roles, node_id = settings[cluster.PROCESS_ROLES], settings[cluster.NODE_ID]
    if settings[cluster.BROKER_ID] >= 0 and settings[cluster.BROKER_ID] != node_id:
        yield f"broker.id = {settings[cluster.BROKER_ID]} and node.id = {node_id} differ; one of them is enough."
    if settings[cluster.CONTROLLER_QUORUM_AUTO_JOIN_ENABLE] and "controller" not in roles:
        yield "controller.quorum.auto.join.enable is for controllers, but process.roles does not include controller."
    try:
        voters = quorum_voters(settings)
    except SettingsError as error:
        yield from error.sentences
        return
    among_voters = node_id in {voter.id for voter in voters}
    if voters and "controller" in roles and not among_voters:
        yield f"This node is a controller, but controller.quorum.voters does not name node {node_id}."
    if voters and "controller" not in roles and among_voters:
        yield f"controller.quorum.voters names node {node_id}, but process.roles does not include controller."
    if "controller" not in roles and not voters and not bootstrap_servers(settings):
        yield "A node that is only a broker needs controller.quorum.bootstrap.servers, or controller.quorum.voters."


def _group_rules(settings: Settings) -> Iterator[str]:
    for lowest, value, highest in _BETWEEN:
        if settings[lowest] > settings[highest]:
            yield f"{lowest.name} = {settings[lowest]} must not be more than {highest.name} = {settings[highest]}."
        elif not settings[lowest] <= settings[value] <= settings[highest]:
            yield f"{value.name} = {settings[value]} must lie between {lowest.name} and {highest.name}."


def _between(family: str, quantity: str) -> tuple[Setting[int], Setting[int], Setting[int]]:
    return (
        BROKER[f"group.{family}.min.{quantity}"],
        BROKER[f"group.{family}.{quantity}"],
        BROKER[f"group.{family}.max.{quantity}"],
    )


_BETWEEN = (
    *(
        _between(family, quantity)
        for family in ("consumer", "share", "streams")
        for quantity in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms")
    ),
    _between("share", "record.lock.duration.ms"),
    _between("share", "delivery.count.limit"),
    _between("share", "partition.max.record.locks"),
)

_RULES: tuple[Callable[[Settings], Iterator[str]], ...] = (
    _log_rules,
    _connection_rules,
    _replication_rules,
    _quorum_rules,
    _group_rules,
    _topic_rules,
)
