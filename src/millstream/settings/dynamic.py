"""Changing a broker's settings while it runs (KIP-226): which may change, for whom, and to what."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings.catalog import BROKER, broker_setting
from millstream.settings.checks import check_together
from millstream.settings.declare import IfIgnored, Live, Scope, SettingsError
from millstream.settings.effective import Settings, unknown, usable
from millstream.settings.network import LISTENER_SECURITY_PROTOCOL_MAP, LISTENERS

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_dynamic", "dynamic_values"]

_NEEDS_A_RESTART = (LISTENERS, LISTENER_SECURITY_PROTOCOL_MAP)
"""Live in Apache Kafka, not here: a listener opens with the process."""


def check_dynamic(settings: Settings, values: Mapping[str, str], *, cluster_wide: bool) -> Settings:
    """The settings with these as all dynamic values of their kind; SettingsError if that may not be."""
    mistakes = []
    for name, text in values.items():
        objection = _objection(name, text, cluster_wide=cluster_wide)
        if objection is not None:
            mistakes.append(objection)
    if mistakes:
        raise SettingsError(*mistakes)
    changed = settings.with_dynamic(cluster=values) if cluster_wide else settings.with_dynamic(broker=values)
    check_together(changed)
    return changed


def dynamic_values(values: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What can be used of dynamic values that the metadata log holds, and sentences on the rest.

    Another broker, or Apache Kafka on the same directory, may have written what we don't know; it is kept in the
    image and left out of the settings.
    """
    known = {name: text for name, text in values.items() if name in BROKER and BROKER[name].live is not Live.NO}
    good, objections = usable(Scope.BROKER, known)
    ignored = tuple(f"The dynamic setting {name} is not used here." for name in values if name not in known)
    return good, (*objections, *ignored)


def _objection(name: str, text: str, *, cluster_wide: bool) -> str | None:
    setting = broker_setting(name)
    if setting is None:
        return unknown(name, Scope.BROKER)
    if setting.live is Live.NO:
        return f"{name} cannot change while the broker runs; set it at the start."
    if setting in _NEEDS_A_RESTART:
        return f"{name} cannot change while this broker runs: a listener opens with the process."
    if setting.live is Live.PER_BROKER and cluster_wide:
        return f"{name} is each broker's own; name the broker."
    try:
        value = setting.parse(text)
    except SettingsError as error:
        return error.sentences[0]
    if setting.if_ignored is IfIgnored.UNSAFE and not setting.implemented and value != setting.default:
        return f"{name} is not enforced here yet, and pretending would not be safe."
    return None
