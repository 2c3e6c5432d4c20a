"""Which values do nothing here although somebody has set them: the one rule, for a file and for stored configs alike.

A setting that this broker does not act on is declared so (`implemented=False`). A value equal to the default changes
nothing and is never worth a word. What the metadata log holds may besides have no declaration, or a value that is not
allowed, where another release or Apache Kafka has written it: such a config falls back to its default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.settings.catalog import BY_SCOPE, broker_setting
from millstream.settings.declare import Scope, SettingsError
from millstream.settings.effective import unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from millstream.settings.declare import Setting

__all__ = ["configs_without_effect", "not_acted_on"]


def not_acted_on(scope: Scope, values: Mapping[str, str]) -> Iterator[tuple[str, Setting[Any]]]:
    """The declared settings among these that have another value than the default, on which this broker does not act."""
    for name, text in values.items():
        setting = _declared(scope, name)
        if setting is not None and not setting.implemented and setting.parse(text) != setting.default:
            yield name, setting


def ignored(name: str) -> str:
    return f"{name} is ignored: this broker does not act on it."


def configs_without_effect(scope: Scope, values: Mapping[str, str]) -> dict[str, str]:
    """Of the configs that are stored for a resource, those that do nothing here, each with a sentence on why."""
    readable, found = {}, {}
    for name, text in values.items():
        setting = _declared(scope, name)
        if setting is None:
            found[name] = unknown(name, scope)
            continue
        try:
            setting.parse(text)
        except SettingsError as error:
            found[name] = f"A stored value is ignored: {error.sentences[0]}"
        else:
            readable[name] = text
    return found | {name: ignored(name) for name, _ in not_acted_on(scope, readable)}


def _declared(scope: Scope, name: str) -> Setting[Any] | None:
    return broker_setting(name) if scope is Scope.BROKER else BY_SCOPE[scope].get(name)
