"""What a setting's value is, and why: the layers over the defaults.

From weak to strong: the declaration's default, what the process was started with (file, environment, command line:
one layer, "static"), the cluster-wide dynamic value, this broker's dynamic value; for a topic its own value on top,
above whatever its broker-wide synonyms say. That is Apache Kafka's order, and DescribeConfigs shows the same chain.

`Settings` never changes. A dynamic update makes a new one (`with_dynamic`), which the broker swaps in whole, so that
nobody sees half an update. Values are parsed on first use and kept: `settings[SETTING]` is then a dictionary look-up.
"""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from millstream.settings.catalog import BROKER, BY_SCOPE, nearest
from millstream.settings.declare import Scope, Setting, SettingsError, Times

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = [
    "ConfigSource",
    "Settings",
    "Synonym",
    "check_overrides",
    "group_settings",
    "topic_settings",
    "unknown",
    "usable",
]

T = TypeVar("T")

_NOTHING: Mapping[str, str] = MappingProxyType({})


class ConfigSource(IntEnum):
    """Where a value comes from; the numbers are DescribeConfigs'."""

    UNKNOWN = 0
    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


_SOURCE_OF_SCOPE = {
    Scope.TOPIC: ConfigSource.TOPIC_CONFIG,
    Scope.GROUP: ConfigSource.GROUP_CONFIG,
    Scope.CLIENT_METRICS: ConfigSource.CLIENT_METRICS_CONFIG,
}


class Synonym(NamedTuple):
    """One link of the chain behind a value. A secret's text is None."""

    name: str
    value: str | None
    source: ConfigSource


class _Values(dict[Setting[Any], Any]):
    """Typed values, resolved when first asked for."""

    __slots__ = ("_settings",)

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._settings = settings

    def __missing__(self, setting: Setting[Any]) -> Any:
        value = self[setting] = self._settings._resolve(setting)
        return value


class Settings:
    """The settings of a broker, or of one topic, group or client-metrics subscription (`of`)."""

    __slots__ = ("_values", "broker", "cluster", "overrides", "scope", "static")

    def __init__(
        self,
        static: Mapping[str, str] = _NOTHING,
        *,
        cluster: Mapping[str, str] = _NOTHING,
        broker: Mapping[str, str] = _NOTHING,
        scope: Scope = Scope.BROKER,
        overrides: Mapping[str, str] = _NOTHING,
    ) -> None:
        self.static = static
        """What the process was started with, as text."""
        self.cluster = cluster
        """Dynamic values for every broker."""
        self.broker = broker
        """Dynamic values for this broker."""
        self.scope = scope
        self.overrides = overrides
        """The values of the one topic, group or subscription that these settings are of."""
        self._values = _Values(self)

    def __getitem__(self, setting: Setting[T]) -> T:
        value: T = self._values[setting]
        return value

    get = __getitem__

    def with_static(self, values: Mapping[str, str]) -> Settings:
        """The same with some static values replaced."""
        return Settings({**self.static, **values}, cluster=self.cluster, broker=self.broker)

    def with_dynamic(
        self, *, cluster: Mapping[str, str] | None = None, broker: Mapping[str, str] | None = None
    ) -> Settings:
        """The same with other dynamic values. They must have passed `check_dynamic`."""
        return Settings(
            self.static,
            cluster=self.cluster if cluster is None else dict(cluster),
            broker=self.broker if broker is None else dict(broker),
        )

    def of(self, scope: Scope, overrides: Mapping[str, str]) -> Settings:
        """The settings of one topic, group or subscription on this broker.

        What a metadata log holds and nobody here can read falls back to the default.
        """
        return Settings(
            self.static, cluster=self.cluster, broker=self.broker, scope=scope, overrides=usable(scope, overrides)[0]
        )

    def is_set(self, setting: Setting[Any]) -> bool:
        """Whether anybody gave it, or any of its synonyms, a value."""
        if setting.scope is self.scope and setting.name in self.overrides:
            return True
        return any(name in layer for name, _ in _value_names(setting) for _, layer in self._layers())

    def source_of(self, setting: Setting[Any]) -> ConfigSource:
        """Where the value comes from, as DescribeConfigs says it: the strongest link of the chain."""
        chain = self.synonyms_of(setting)
        return chain[0].source if chain else ConfigSource.DEFAULT_CONFIG

    def text_of(self, setting: Setting[T]) -> str | None:
        """The value as DescribeConfigs sends it; None for a secret or where there is no value."""
        return None if setting.sensitive else setting.render(self[setting])

    def synonyms_of(self, setting: Setting[Any]) -> tuple[Synonym, ...]:
        """The chain behind a value, strongest first, exactly as Apache Kafka lists it.

        That includes its habit to start at the first link that has the setting's own main name: a retention.ms that
        comes from log.retention.hours has an empty chain and counts as a default.
        """
        names = _chain_names(setting)
        chain = [
            _link(BROKER[name], layer[name], source)
            for source, layer in self._layers()
            for name in names
            if name in layer
        ]
        chain += [
            _link(BROKER[name], BROKER[name].render(BROKER[name].default), ConfigSource.DEFAULT_CONFIG)
            for name in names
            if BROKER[name].default is not None
        ]
        main = setting.name if setting.scope is Scope.BROKER else names[0] if names else ""
        while chain and chain[0].name != main:
            del chain[0]
        if setting.scope is Scope.GROUP and not names:
            # No broker's setting stands behind it: its own default does.
            chain.append(_link(setting, setting.render(setting.default), ConfigSource.DEFAULT_CONFIG))
        if setting.scope is not Scope.BROKER and setting.scope is self.scope and setting.name in self.overrides:
            chain.insert(0, _link(setting, self.overrides[setting.name], _SOURCE_OF_SCOPE[setting.scope]))
        return tuple(chain)

    def _layers(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        return (
            (ConfigSource.DYNAMIC_BROKER_CONFIG, self.broker),
            (ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG, self.cluster),
            (ConfigSource.STATIC_BROKER_CONFIG, self.static),
        )

    def _resolve(self, setting: Setting[Any]) -> Any:
        if setting.scope is self.scope and setting.name in self.overrides:
            return setting.parse(self.overrides[setting.name])
        for name, factor in _value_names(setting):
            for source, layer in self._layers():
                text = layer.get(name)
                if text is None:
                    continue
                try:
                    value = BROKER[name].parse(text)
                except SettingsError:
                    if source is ConfigSource.STATIC_BROKER_CONFIG:
                        raise
                    continue  # the metadata log may hold what Apache Kafka or another release put there
                return value if factor == 1 else (-1 if value < 0 else value * factor)
        return setting.default


def _link(setting: Setting[Any], text: str | None, source: ConfigSource) -> Synonym:
    return Synonym(setting.name, None if setting.sensitive else text, source)


def _value_names(setting: Setting[Any]) -> Iterable[tuple[str, int]]:
    """The broker-wide names that give a value, first one first, each with its factor."""
    if setting.scope is Scope.BROKER:
        return ((setting.name, 1),)
    return [
        (synonym.setting.name, synonym.factor) if isinstance(synonym, Times) else (synonym.name, 1)
        for synonym in setting.synonyms
    ]


def _chain_names(setting: Setting[Any]) -> tuple[str, ...]:
    """The names whose values are in the chain. One quantity in several units is one family."""
    if setting.scope is not Scope.BROKER:
        return tuple(name for name, _ in _value_names(setting))
    return _FAMILY_OF.get(setting.name, (setting.name,))


def _families() -> dict[str, tuple[str, ...]]:
    families = {}
    for topic_setting in BY_SCOPE[Scope.TOPIC].values():
        names = tuple(name for name, _ in _value_names(topic_setting))
        in_other_units = any(isinstance(synonym, Times) for synonym in topic_setting.synonyms)
        families.update(dict.fromkeys(names if in_other_units else names[:1], names))
    return families


_FAMILY_OF = _families()


def topic_settings(settings: Settings, overrides: Mapping[str, str]) -> Settings:
    """The effective settings of a topic."""
    return settings.of(Scope.TOPIC, overrides)


def group_settings(settings: Settings, overrides: Mapping[str, str]) -> Settings:
    """The effective settings of a group."""
    return settings.of(Scope.GROUP, overrides)


def usable(scope: Scope, values: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The values that are known and allowed, and a sentence on each other: for what comes from a metadata log."""
    good, objections, known = {}, [], BY_SCOPE[scope]
    for name, text in values.items():
        setting = known.get(name)
        if setting is None:
            objections.append(unknown(name, scope))
            continue
        try:
            setting.parse(text)
        except SettingsError as error:
            objections.extend(error.sentences)
        else:
            good[name] = text
    return good, tuple(objections)


def check_overrides(scope: Scope, overrides: Mapping[str, str | None]) -> None:
    """Raise SettingsError, with a sentence per mistake, unless every name is known and every value allowed."""
    mistakes = [f"{name} needs a value." for name, text in overrides.items() if text is None]
    mistakes += usable(scope, {name: text for name, text in overrides.items() if text is not None})[1]
    if mistakes:
        raise SettingsError(*mistakes)


def unknown(name: str, scope: Scope) -> str:
    """The sentence for a name that nobody knows."""
    meant = nearest(name, scope)
    return f"There is no {scope.value} setting {name}." + (f" Did you mean {meant}?" if meant else "")
