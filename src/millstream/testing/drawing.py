"""Settings by the dice: every declared setting with values worth simulating gets one of them now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings.catalog import BROKER, TOPIC

if TYPE_CHECKING:
    from collections.abc import Mapping
    from random import Random
    from typing import Any

    from millstream.settings.declare import Setting

_TAKES_AWAY = frozenset({"retention.ms", "retention.bytes"})


def draw_broker_settings(random: Random) -> dict[str, str]:
    """For one cluster: all of its nodes have the same."""
    return _draw(BROKER, random)


def draw_topic_settings(random: Random, *, keep_everything: bool = True) -> dict[str, str]:
    """For one topic. A history that expects every record back cannot have retention take them away."""
    drawn = _draw(TOPIC, random)
    return {name: value for name, value in drawn.items() if not keep_everything or name not in _TAKES_AWAY}


def _draw(declared: Mapping[str, Setting[Any]], random: Random) -> dict[str, str]:
    drawn: dict[str, str] = {}
    for name, setting in declared.items():
        if setting.simulate and random.random() < 0.5:
            text = setting.render(random.choice(setting.simulate))
            if text is not None:
                drawn[name] = text
    return drawn
