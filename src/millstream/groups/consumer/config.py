"""The settings that consumer groups obey: a group's own, within the bounds that the broker sets."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from millstream.groups.assignors import ASSIGNORS
from millstream.settings import (
    CONSUMER_ASSIGNMENT_INTERVAL_MS,
    CONSUMER_HEARTBEAT_INTERVAL_MS,
    CONSUMER_SESSION_TIMEOUT_MS,
    GROUP_CONSUMER_ASSIGNORS,
    GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS,
    GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
    GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS,
    GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
    GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
)

if TYPE_CHECKING:
    from millstream.groups.machine import GroupMachine
    from millstream.settings.declare import Setting
    from millstream.settings.effective import Settings


class ConsumerConfig(NamedTuple):
    """What a consumer group reads of the settings, at the moment of a decision."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    assignment_interval_ms: int

    @classmethod
    def of(cls, machine: GroupMachine, group_id: str) -> ConsumerConfig:
        return _read(machine.group_settings(group_id))


@lru_cache(maxsize=64)
def _read(settings: Settings) -> ConsumerConfig:
    """Asked twice by each heartbeat; groups without settings of their own share one object."""
    return ConsumerConfig(
        session_timeout_ms=_clamped(
            settings,
            CONSUMER_SESSION_TIMEOUT_MS,
            GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS,
            GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS,
        ),
        heartbeat_interval_ms=_clamped(
            settings,
            CONSUMER_HEARTBEAT_INTERVAL_MS,
            GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS,
            GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS,
        ),
        assignment_interval_ms=_clamped(
            settings,
            CONSUMER_ASSIGNMENT_INTERVAL_MS,
            GROUP_CONSUMER_MIN_ASSIGNMENT_INTERVAL_MS,
            GROUP_CONSUMER_MAX_ASSIGNMENT_INTERVAL_MS,
        ),
    )


def _clamped(settings: Settings, setting: Setting[int], least: Setting[int], most: Setting[int]) -> int:
    """A group's own value may date from a time when the bounds were others."""
    value = settings[setting]
    if setting.name not in settings.overrides:
        return value
    return min(max(value, settings[least]), settings[most])


def assignor_names(settings: Settings) -> list[str]:
    """The assignors that members may ask for, the default first; names of Java classes mean nothing here."""
    return [name for name in settings[GROUP_CONSUMER_ASSIGNORS] if name in ASSIGNORS] or list(ASSIGNORS)
