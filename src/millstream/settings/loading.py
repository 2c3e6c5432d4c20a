"""From what a person wrote to `Settings`: server.properties, KAFKA_* variables, --set.

The later wins. Nothing is half accepted: either every known setting parses, fits the others and can be honoured, or
`load` raises with one sentence per mistake. A setting that this broker does not act on is a warning if that is
harmless, and stops the start if it would leave data or access less protected than its owner believes. A value equal
to the default changes nothing and is never worth a word.

An old file works: `broker.id` becomes `node.id`, and whatever spoke to ZooKeeper is not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.settings.catalog import broker_setting, nearest
from millstream.settings.checks import check_together
from millstream.settings.cluster import BROKER_HEARTBEAT_INTERVAL_MS, BROKER_SESSION_TIMEOUT_MS
from millstream.settings.declare import IfIgnored, Scope, SettingsError
from millstream.settings.effective import Settings, unknown
from millstream.settings.listeners import listening_endpoints
from millstream.settings.without_effect import ignored, not_acted_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from millstream.settings.declare import Setting

__all__ = ["Loaded", "from_environment", "load"]

_OF_JAVA = frozenset(
    {
        "KAFKA_CLUSTER_ID",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_OPTS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_VERSION",
    }
)
"""Variables of Apache Kafka's scripts and image that are no settings."""

_GONE = {
    "advertised.host.name": "advertised.listeners has taken its place",
    "advertised.port": "advertised.listeners has taken its place",
    "allow.everyone.if.no.acl.found": "it belongs to an authorizer, and there is none yet",
    "auto.include.jmx.reporter": "there is no JMX",
    "broker.id.generation.enable": "a node's number is given, not generated",
    "control.plane.listener.name": "controller.listener.names has taken its place",
    "group.coordinator.new.enable": "there is only one group coordinator",
    "host.name": "listeners has taken its place",
    "inter.broker.protocol.version": "the cluster's metadata.version has taken its place",
    "log.message.downconversion.enable": "old record formats are not served",
    "log.message.format.version": "records have one format",
    "log.message.timestamp.difference.max.ms": "log.message.timestamp.before.max.ms has taken its place",
    "offsets.commit.required.acks": "commits always wait for all replicas in sync",
    "port": "listeners has taken its place",
    "reserved.broker.max.id": "a node's number is given, not generated",
    "super.users": "it belongs to an authorizer, and there is none yet",
}
"""Names that files in the field still have."""

_FOREIGN = ("confluent.", "rlmm.config.", "rsm.config.", "log4j", "password.encoder.")
"""Prefixes of settings that belong to other software or to plugins."""


class Loaded(NamedTuple):
    """Settings to start with, and what their owner should know."""

    settings: Settings
    warnings: tuple[str, ...]


def load(
    properties: Mapping[str, str] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
) -> Loaded:
    """Settings from a parsed file, environment variables and command-line options, weakest first."""
    from_variables = from_environment(environment or {})
    named = {**(properties or {}), **from_variables, **(options or {})}
    mistakes: list[str] = []
    warnings: list[str] = list(_about_zookeeper(named))
    static: dict[str, str] = {}
    for name, text in named.items():
        setting = broker_setting(name)
        if setting is not None:
            static[name] = text
            mistakes.extend(_mistake(setting, name, text))
        elif options and name in options:
            mistakes.append(_about_unknown(name))
        elif not name.startswith("zookeeper.") and (name not in from_variables or nearest(name, Scope.BROKER)):
            warnings.append(_about_unknown(name))
    for one, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if one in static and other not in static and not static[one].strip().startswith("-"):
            static[other] = static[one]
    if mistakes:
        raise SettingsError(*mistakes)
    settings = Settings(static)
    refusals = [*_unserved_listeners(settings), *_refusals(settings)]
    if refusals:
        raise SettingsError(*refusals)
    check_together(settings)
    warnings.extend(_ignored(settings))
    warnings.extend(_risky(settings))
    return Loaded(settings, tuple(warnings))


def from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Settings from variables as Apache Kafka's image names them: KAFKA_LOG_DIRS is log.dirs, `__` is _, `___` is -."""
    found = {}
    for variable in sorted(environment):
        if variable.startswith("KAFKA_") and variable not in _OF_JAVA:
            dotted = variable.removeprefix("KAFKA_").lower().replace("_", ".")
            found[dotted.replace("...", "-").replace("..", "_")] = environment[variable]
    return found


def _mistake(setting: Setting[Any], name: str, text: str) -> Iterator[str]:
    try:
        setting.parse(text)
    except SettingsError as error:
        yield error.sentences[0] if name == setting.name else f"In {name}: {error.sentences[0]}"


def _about_zookeeper(named: Mapping[str, str]) -> Iterator[str]:
    if any(name.startswith("zookeeper.") for name in named):
        yield "zookeeper.connect is ignored: no ZooKeeper is needed, the cluster keeps its metadata itself."


def _about_unknown(name: str) -> str:
    if name in _GONE:
        return f"{name} is ignored: {_GONE[name]}."
    if name.startswith(_FOREIGN):
        return f"{name} is ignored: it is not a setting of the broker."
    return unknown(name, Scope.BROKER)


def _refusals(settings: Settings) -> Iterator[str]:
    for name, setting in not_acted_on(Scope.BROKER, settings.static):
        if setting.if_ignored is IfIgnored.UNSAFE:
            yield f"{name} is set, but this broker does not act on it yet, and ignoring it would not be safe."


def _ignored(settings: Settings) -> Iterator[str]:
    for name, setting in not_acted_on(Scope.BROKER, settings.static):
        if setting.if_ignored is IfIgnored.HARMLESS:
            yield ignored(name)


def _risky(settings: Settings) -> Iterator[str]:
    """What may be meant, since the two settings belong to different nodes, but is seldom right."""
    interval_ms, session_ms = settings[BROKER_HEARTBEAT_INTERVAL_MS], settings[BROKER_SESSION_TIMEOUT_MS]
    if 2 * interval_ms > session_ms:
        yield (
            f"broker.heartbeat.interval.ms = {interval_ms} is more than half of "
            f"broker.session.timeout.ms = {session_ms}: one heartbeat that is lost, and a broker may be fenced. "
            "Millstream's brokers send one every third of a session at least."
        )


def _unserved_listeners(settings: Settings) -> Iterator[str]:
    for endpoint in listening_endpoints(settings):
        if endpoint.security_protocol != "PLAINTEXT":
            yield f"The listener {endpoint} needs {endpoint.security_protocol}, which this broker does not serve yet."
