"""All declared settings by scope and name, and the nearest name to one that nobody knows."""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from millstream.settings import (
    cleaning,
    cluster,
    groups,
    metering,
    network,
    own,
    remote,
    replication,
    resources,
    sasl,
    security,
    share,
    storage,
    tls,
    topics,
    transactions,
)
from millstream.settings.declare import Scope, Setting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

__all__ = ["BROKER", "BY_SCOPE", "CLIENT_METRICS", "GROUP", "TOPIC", "broker_setting", "nearest"]

FAMILIES = (
    cluster,
    network,
    storage,
    cleaning,
    topics,
    replication,
    groups,
    share,
    resources,
    transactions,
    security,
    tls,
    sasl,
    remote,
    metering,
    own,
)
"""The modules with declarations, in the order in which the reference shows them."""


def declared_in(family: ModuleType) -> list[Setting[Any]]:
    """A module's own settings, in its order, without those that it imports as synonyms."""
    found = [value for value in vars(family).values() if isinstance(value, Setting)]
    narrower = [setting for setting in found if setting.scope is not Scope.BROKER]
    return narrower or found


def _all_of(scope: Scope) -> Mapping[str, Setting[Any]]:
    return MappingProxyType(
        {setting.name: setting for family in FAMILIES for setting in declared_in(family) if setting.scope is scope}
    )


BROKER: Mapping[str, Setting[Any]] = _all_of(Scope.BROKER)
TOPIC: Mapping[str, Setting[Any]] = _all_of(Scope.TOPIC)
GROUP: Mapping[str, Setting[Any]] = _all_of(Scope.GROUP)
CLIENT_METRICS: Mapping[str, Setting[Any]] = _all_of(Scope.CLIENT_METRICS)

BY_SCOPE: Mapping[Scope, Mapping[str, Setting[Any]]] = MappingProxyType(
    {Scope.BROKER: BROKER, Scope.TOPIC: TOPIC, Scope.GROUP: GROUP, Scope.CLIENT_METRICS: CLIENT_METRICS}
)

_LISTENER_PREFIX = r"listener\.name\.([^.]+)\.(?:([a-z0-9-]+)\.)?((?:ssl|sasl|principal|connections|max)\..+)"


def broker_setting(name: str) -> Setting[Any] | None:
    """The declaration behind a broker's setting, also for listener.name.LISTENER.[MECHANISM.]SETTING."""
    found = BROKER.get(name)
    if found is None and name.startswith("listener.name."):
        matched = re.fullmatch(_LISTENER_PREFIX, name)
        if matched is not None:
            found = BROKER.get(matched[3]) or (BROKER.get(f"{matched[2]}.{matched[3]}") if matched[2] else None)
    return found


@lru_cache(maxsize=256)  # takes a millisecond, and ten thousand topics may have the same wrong name stored
def nearest(name: str, scope: Scope) -> str | None:
    """The known name that somebody most likely meant."""
    import difflib

    known = BY_SCOPE[scope]
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
    if not close and scope is Scope.TOPIC and name in BROKER:
        close = [topic.name for topic in known.values() for synonym in topic.synonyms if name == name_of(synonym)]
    return close[0] if close else None


def name_of(synonym: Any) -> str:
    """The name of a synonym, in whichever unit it is."""
    name: str = synonym.name if isinstance(synonym, Setting) else synonym.setting.name
    return name
