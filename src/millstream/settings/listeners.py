"""Listeners, roles and the quorum, as typed values that fit together.

`listeners` says where to listen, `advertised.listeners` what clients are told, `listener.security.protocol.map` which
protocol a name speaks; `controller.listener.names` and `inter.broker.listener.name` pick among them. `Endpoints.of`
reads all five and refuses what Apache Kafka refuses. Two things are easier here: a controller listener may be missing
on a node that is its own whole quorum, and `advertised.listeners` has no default: a client is told what it dialled, and
so it is where an advertised address has no host.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from millstream.settings.cluster import (
    CONTROLLER_QUORUM_BOOTSTRAP_SERVERS,
    CONTROLLER_QUORUM_VOTERS,
    PROCESS_ROLES,
)
from millstream.settings.declare import SettingsError
from millstream.settings.network import (
    ADVERTISED_LISTENERS,
    CONTROLLER_LISTENER_NAMES,
    INTER_BROKER_LISTENER_NAME,
    LISTENER_SECURITY_PROTOCOL_MAP,
    LISTENERS,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    SECURITY_INTER_BROKER_PROTOCOL,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.settings.effective import Settings

__all__ = [
    "Endpoint",
    "Endpoints",
    "Voter",
    "bootstrap_servers",
    "connections_per_address",
    "listening_endpoints",
    "quorum_voters",
]

SECURITY_PROTOCOLS = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
"""Names and numbers of the security protocols, as registrations carry them."""

_URI = r"(?P<name>[^:/]+)://(?:\[(?P<six>[0-9a-zA-Z\-%._:]*)\]|(?P<host>[0-9a-zA-Z\-%._]*)):(?P<port>-?[0-9]+)"
_NAME = r"[a-zA-Z0-9_\-]+"
_WILDCARDS = ("0.0.0.0", "::")  # noqa: S104  recognized in order to be refused


class Endpoint(NamedTuple):
    """One address of a listener. An empty host means every interface; port 0 any free port."""

    listener: str
    host: str
    port: int
    security_protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


class Voter(NamedTuple):
    """A controller of a quorum with fixed voters."""

    id: int
    host: str
    port: int


class Endpoints(msgspec.Struct, frozen=True):
    """The listeners of a node, sorted by what they are for."""

    broker: tuple[Endpoint, ...]
    """Where clients and other brokers connect."""
    controller: tuple[Endpoint, ...]
    """Where the controller's protocol is spoken."""
    advertised: tuple[Endpoint, ...]
    """What clients are told, by listener; empty where each is told the address that it dialled."""
    advertised_controller: tuple[Endpoint, ...]
    """What other nodes are told of the controller listeners, where that is not where they listen."""
    inter_broker: str
    """The listener between brokers."""
    controller_names: tuple[str, ...]
    """All names of controller listeners, the first being the one that this node dials."""
    security_protocols: dict[str, str]
    """The protocol of every listener name, also of those that are dialled only."""

    @classmethod
    def of(cls, settings: Settings) -> Endpoints:
        """Read and check them together. Raises SettingsError with a sentence per mistake."""
        roles = settings[PROCESS_ROLES]
        names = tuple(name.upper() for name in settings[CONTROLLER_LISTENER_NAMES])
        protocols = _protocols(settings)
        listening = listening_endpoints(settings)
        _check_listening(listening)
        told = settings[ADVERTISED_LISTENERS]
        advertised = _endpoints(ADVERTISED_LISTENERS.name, told or (), protocols)
        broker = tuple(endpoint for endpoint in listening if endpoint.listener not in names)
        controller = tuple(endpoint for endpoint in listening if endpoint.listener in names)
        inter_broker = _inter_broker(settings, protocols)
        found = cls(
            broker=broker if "broker" in roles else (),
            controller=controller,
            advertised=tuple(endpoint for endpoint in advertised if endpoint.listener not in names),
            advertised_controller=tuple(endpoint for endpoint in advertised if endpoint.listener in names),
            inter_broker=inter_broker,
            controller_names=names,
            security_protocols=protocols,
        )
        if "broker" not in roles and not settings.is_set(LISTENERS):
            name = names[0] if names else "CONTROLLER"
            raise SettingsError(
                f"A node that is only a controller needs listeners: where controllers reach it, for example "
                f"listeners={name}://:9093."
            )
        mistakes = [*_mistakes_of_roles(found, roles, broker), *_mistakes_of_advertised(found, advertised, listening)]
        if mistakes:
            raise SettingsError(*mistakes)
        return found


def listening_endpoints(settings: Settings) -> tuple[Endpoint, ...]:
    """The parsed `listeners`, alone."""
    return _endpoints(LISTENERS.name, settings[LISTENERS], _protocols(settings))


def quorum_voters(settings: Settings) -> tuple[Voter, ...]:
    """The fixed voters; empty where the quorum is dynamic."""
    voters = []
    for entry in settings[CONTROLLER_QUORUM_VOTERS]:
        number, _, address = entry.partition("@")
        voters.append(Voter(int(number), *_host_and_port(address)))
    if len({voter.id for voter in voters}) != len(voters):
        raise SettingsError("controller.quorum.voters names a voter twice.")
    return tuple(voters)


def bootstrap_servers(settings: Settings) -> tuple[tuple[str, int], ...]:
    """Where to find the controllers of a dynamic quorum."""
    return tuple(_host_and_port(entry) for entry in settings[CONTROLLER_QUORUM_BOOTSTRAP_SERVERS])


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _protocols(settings: Settings) -> dict[str, str]:
    """The security protocol by listener name. Controller listeners are PLAINTEXT where nobody set the map."""
    found: dict[str, str] = {}
    for entry in settings[LISTENER_SECURITY_PROTOCOL_MAP].split(","):
        name, colon, protocol = (part.strip() for part in entry.partition(":"))
        if not entry.strip():
            continue
        if not colon or protocol.upper() not in SECURITY_PROTOCOLS:
            choices = ", ".join(SECURITY_PROTOCOLS)
            raise SettingsError(
                f"listener.security.protocol.map has {entry.strip()!r}: it takes NAME:PROTOCOL, "
                f"PROTOCOL being one of {choices}."
            )
        if name.upper() in found:
            raise SettingsError(f"listener.security.protocol.map names {name} twice.")
        found[name.upper()] = protocol.upper()
    if not settings.is_set(LISTENER_SECURITY_PROTOCOL_MAP):
        for name in settings[CONTROLLER_LISTENER_NAMES]:
            found.setdefault(name.upper(), "PLAINTEXT")
    return found


def _endpoints(setting: str, entries: tuple[str, ...], protocols: Mapping[str, str]) -> tuple[Endpoint, ...]:
    found = []
    for entry in entries:
        matched = re.fullmatch(_URI, entry)
        if matched is None or not re.fullmatch(_NAME, matched["name"]):
            raise SettingsError(
                f"{setting} has {entry!r}: it takes NAME://host:port, for example PLAINTEXT://localhost:9092."
            )
        name, port = matched["name"].upper(), int(matched["port"])
        if name not in protocols:
            raise SettingsError(
                f"{setting} has the listener {name}, whose protocol is missing in listener.security.protocol.map; "
                f"add {name}:PLAINTEXT there."
            )
        if not 0 <= port <= 65_535:
            raise SettingsError(f"{setting} has {entry!r}: a port lies between 0 and 65535.")
        found.append(Endpoint(name, matched["six"] or matched["host"] or "", port, protocols[name]))
    return tuple(found)


def _check_listening(endpoints: tuple[Endpoint, ...]) -> None:
    seen: dict[int, Endpoint] = {}
    names = [endpoint.listener for endpoint in endpoints]
    for endpoint in endpoints:
        if names.count(endpoint.listener) > 1:
            raise SettingsError(f"listeners names {endpoint.listener} twice; every listener needs a name of its own.")
        other = seen.get(endpoint.port)
        if endpoint.port and other is not None and not _one_of_each_family(endpoint.host, other.host):
            raise SettingsError(f"listeners has {other} and {endpoint} on the same port.")
        seen[endpoint.port] = endpoint


def _one_of_each_family(host: str, other: str) -> bool:
    """IPv4 and IPv6 may share a port, as in Apache Kafka."""
    return (":" in host) != (":" in other) and all(re.fullmatch(r"[0-9.]+|.*:.*", each) for each in (host, other))


def _inter_broker(settings: Settings, protocols: Mapping[str, str]) -> str:
    named = settings[INTER_BROKER_LISTENER_NAME]
    if named is None:
        return settings[SECURITY_INTER_BROKER_PROTOCOL]
    if settings.is_set(SECURITY_INTER_BROKER_PROTOCOL):
        raise SettingsError("Set only one of inter.broker.listener.name and security.inter.broker.protocol.")
    if named.upper() not in protocols:
        raise SettingsError(
            f"inter.broker.listener.name is {named}, whose protocol is missing in listener.security.protocol.map."
        )
    return named.upper()


def _mistakes_of_roles(found: Endpoints, roles: tuple[str, ...], listening: tuple[Endpoint, ...]) -> list[str]:
    """What does not fit the node's roles."""
    mistakes = []
    if "broker" in roles and not found.broker:
        mistakes.append("listeners leaves no listener for clients: all are in controller.listener.names.")
    if "broker" not in roles and listening:
        mistakes.append(
            f"A node that is only a controller has only listeners of controller.listener.names, not {listening[0]}."
        )
    if "controller" not in roles and found.controller:
        mistakes.append(f"listeners has {found.controller[0]}, but process.roles does not include controller.")
    if "broker" in roles and found.inter_broker in found.controller_names:
        mistakes.append(f"{found.inter_broker} cannot be both a controller listener and the listener between brokers.")
    if "broker" in roles and found.inter_broker not in {endpoint.listener for endpoint in found.broker}:
        names = ", ".join(endpoint.listener for endpoint in found.broker)
        mistakes.append(
            f"Brokers would use the listener {found.inter_broker} among themselves, but listeners has only {names}; "
            f"set inter.broker.listener.name."
        )
    return mistakes


def _mistakes_of_advertised(
    found: Endpoints, advertised: tuple[Endpoint, ...], listening: tuple[Endpoint, ...]
) -> list[str]:
    """What clients could not be told."""
    mistakes = []
    names = [endpoint.listener for endpoint in advertised]
    known = {endpoint.listener for endpoint in listening}
    for endpoint in advertised:
        if endpoint.host in _WILDCARDS:
            mistakes.append(f"advertised.listeners has {endpoint}: nobody can dial that; use a name or an address.")
        if names.count(endpoint.listener) > 1:
            mistakes.append(f"advertised.listeners names {endpoint.listener} twice.")
        if endpoint.listener not in known and endpoint.listener not in found.controller_names:
            mistakes.append(f"advertised.listeners has {endpoint}, but listeners has no {endpoint.listener}.")
    return mistakes


def connections_per_address(settings: Settings) -> dict[str, int]:
    """The exceptions from max.connections.per.ip: how many connections each named host may have."""
    found = {}
    for entry in filter(None, (part.strip() for part in settings[MAX_CONNECTIONS_PER_IP_OVERRIDES].split(","))):
        host, _, count = entry.rpartition(":")
        if not host or not count.isdecimal():
            raise SettingsError(f"max.connections.per.ip.overrides has {entry!r}: it takes host:count.")
        found[host.strip("[]")] = int(count)
    return found
