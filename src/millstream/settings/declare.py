"""How a setting is declared: once, with everything that anyone needs to know of it.

Name, kind, default, bounds, where it applies, whether it changes live, what it falls back to, whether this broker
acts on it and what ignoring it would mean, and a sentence for people. Parsing, validation, DescribeConfigs, dynamic
updates and the reference documentation are all read from the declaration, so they cannot disagree.

The facts are Apache Kafka 4.3.1's (a conformance test compares them with its own ConfigDef); where ours differ on
purpose, `differs` says why. The sentences are ours.

A setting compares by identity: it is the key under which `Settings` keeps the value, and hashing it costs nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.settings.kinds import Kind

__all__ = ["IfIgnored", "Importance", "Live", "Scope", "Setting", "SettingsError", "Times"]

T = TypeVar("T")


class SettingsError(ValueError):
    """One or more settings are wrong. Each sentence names the setting, the value and what would be right."""

    def __init__(self, *sentences: str) -> None:
        super().__init__("\n".join(sentences))
        self.sentences = sentences


class Scope(Enum):
    """What a setting belongs to."""

    BROKER = "broker"
    TOPIC = "topic"
    GROUP = "group"
    CLIENT_METRICS = "client-metrics"


class Live(Enum):
    """Whether a broker's setting can change while it runs, and for whom. Values are Kafka's names of the modes."""

    NO = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class Importance(Enum):
    """How likely somebody is to need it."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class IfIgnored(Enum):
    """What it means that this broker does not act on a setting that somebody has set."""

    HARMLESS = "warn"
    UNSAFE = "refuse to start"


class Times(msgspec.Struct, frozen=True, eq=False):
    """A synonym in another unit: log.retention.hours stands for so many milliseconds."""

    setting: Setting[Any]
    factor: int


class Setting(msgspec.Struct, Generic[T], frozen=True, eq=False):
    """One declared setting. See the module's docstring."""

    name: str
    kind: Kind[T]
    default: T
    scope: Scope = Scope.BROKER
    live: Live = Live.NO
    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[str, ...] = ()
    any_case: bool = False
    """`one_of` without regard to upper and lower case."""
    empty: bool = True
    """Whether an empty text or list is a value."""
    check: Callable[[T], str | None] | None = None
    """Returns what is wrong with a value, for rules that bounds cannot say."""
    importance: Importance = Importance.MEDIUM
    synonyms: tuple[Setting[Any] | Times, ...] = ()
    """The broker-wide settings that give a topic or group its default, first one first."""
    internal: bool = False
    dynamic_only: bool = False
    """Known to a running broker only: shown by DescribeConfigs where somebody has set it, as in Kafka."""
    implemented: bool = True
    if_ignored: IfIgnored = IfIgnored.HARMLESS
    differs: str = ""
    """Why the default or the bounds are not Apache Kafka's, where they are not."""
    simulate: tuple[T, ...] = ()
    """Values worth drawing in simulations, where the default would hide a code path."""
    doc: str = ""

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def sensitive(self) -> bool:
        return self.kind.name == "password"

    @property
    def read_only(self) -> bool:
        return self.scope is Scope.BROKER and self.live is Live.NO

    @property
    def own(self) -> bool:
        """Whether it is Millstream's own, unknown to Apache Kafka."""
        return self.name.startswith("millstream.")

    def parse(self, text: str) -> T:
        """The typed value of `text`; a SettingsError with one sentence if it is not allowed."""
        shown = "[hidden]" if self.sensitive else repr(text.strip())
        try:
            value = self.kind.parse(text.strip())
        except ValueError as error:
            raise SettingsError(f"{self.name} must be {self.kind.article}, not {shown}: {error}.") from None
        objection = self.objection_to(value)
        if objection is not None:
            raise SettingsError(
                f"{self.name} {objection}, not {shown}." if text.strip() else f"{self.name} {objection}."
            )
        return value

    def render(self, value: T) -> str | None:
        """The value as text, as DescribeConfigs sends it."""
        return None if value is None else self.kind.render(value)

    def objection_to(self, value: Any) -> str | None:
        """What is wrong with a typed value, as the second half of a sentence; None if nothing is."""
        if self.at_least is not None and not value >= self.at_least:
            return f"must be at least {self.at_least}"
        if self.at_most is not None and not value <= self.at_most:
            return f"must be at most {self.at_most}"
        entries = value if isinstance(value, tuple) else (value,)
        if not self.empty and not any(entries):
            return "must not be empty"
        if isinstance(value, tuple) and (not all(value) or len(set(value)) != len(value)):
            return "must name each entry once, and none empty"
        if self.one_of and not all(self._allows(entry) for entry in entries):
            return f"must be {'any of' if isinstance(value, tuple) else 'one of'} {', '.join(self.one_of)}"
        return self.check(value) if self.check is not None else None

    def _allows(self, entry: str) -> bool:
        if self.any_case:
            return entry.lower() in {choice.lower() for choice in self.one_of}
        return entry in self.one_of
