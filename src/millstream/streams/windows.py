"""Windows: how a time line is cut, as frozen data, with Kafka Streams' names and bounds.

Times are milliseconds. A TimeWindow's end is exclusive, a sliding or session window's is inclusive, as in Kafka
Streams. Grace is how long after its end a window still takes records; below zero it is refused here, at build time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple


class Window(NamedTuple):
    """A piece of the time line."""

    start_ms: int
    end_ms: int


class Windowed(NamedTuple):
    """A key in a window: the key of a windowed table."""

    key: Any
    window: Window

    def __str__(self) -> str:
        return f"[{self.key}@{self.window.start_ms}/{self.window.end_ms}]"


def _at_least(name: str, value_ms: int, bound_ms: int) -> None:
    if not isinstance(value_ms, int):
        raise TypeError(f"{name} is {value_ms!r}: it must be a whole number of milliseconds")
    if value_ms < bound_ms:
        raise ValueError(f"{name} is {value_ms} ms: it cannot be less than {bound_ms}")


@dataclass(frozen=True)
class TimeWindows:
    """Windows of one size, a new one every `advance_ms`: tumbling if that is the size, hopping if it is less."""

    size_ms: int
    advance_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        _at_least("a window's size", self.size_ms, 1)
        _at_least("a window's advance", self.advance_ms, 1)
        _at_least("grace", self.grace_ms, 0)
        if self.advance_ms > self.size_ms:
            raise ValueError(f"windows of {self.size_ms} ms every {self.advance_ms} ms would leave gaps")

    @property
    def retention_ms(self) -> int:
        return self.size_ms + self.grace_ms

    @property
    def close_after_ms(self) -> int:
        """How long after its end a window closes."""
        return self.grace_ms

    def __str__(self) -> str:
        kind = "tumbling" if self.advance_ms == self.size_ms else f"hopping every {self.advance_ms} ms"
        return f"{kind}, {self.size_ms} ms, grace {self.grace_ms} ms"


@dataclass(frozen=True)
class SlidingWindows:
    """A window for each set of records of a key that lie within `difference_ms` of each other."""

    difference_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        _at_least("a sliding window's time difference", self.difference_ms, 0)
        _at_least("grace", self.grace_ms, 0)

    @property
    def size_ms(self) -> int:
        return self.difference_ms

    @property
    def retention_ms(self) -> int:
        """Twice the size: the windows before a record's own are read to find its neighbours."""
        return 2 * self.difference_ms + self.grace_ms

    @property
    def close_after_ms(self) -> int:
        return self.grace_ms

    def __str__(self) -> str:
        return f"sliding, {self.difference_ms} ms, grace {self.grace_ms} ms"


@dataclass(frozen=True)
class SessionWindows:
    """Records of a key with no pause longer than `gap_ms` between them."""

    gap_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        _at_least("a session's gap", self.gap_ms, 1)
        _at_least("grace", self.grace_ms, 0)

    @property
    def retention_ms(self) -> int:
        return self.gap_ms + self.grace_ms

    @property
    def close_after_ms(self) -> int:
        return self.gap_ms + self.grace_ms

    def __str__(self) -> str:
        return f"sessions, gap {self.gap_ms} ms, grace {self.grace_ms} ms"


Windows = TimeWindows | SlidingWindows | SessionWindows


@dataclass(frozen=True)
class JoinWindows:
    """Two records join if the right one's time lies in [left - before, left + after]."""

    before_ms: int
    after_ms: int
    grace_ms: int = 0

    def __post_init__(self) -> None:
        for part_ms in (self.before_ms, self.after_ms):
            _at_least("a join's time", part_ms, -(2**63))
        _at_least("a join's window", self.before_ms + self.after_ms, 0)
        _at_least("grace", self.grace_ms, 0)

    @property
    def size_ms(self) -> int:
        return self.before_ms + self.after_ms

    @property
    def retention_ms(self) -> int:
        return self.size_ms + self.grace_ms

    def __str__(self) -> str:
        return f"{self.before_ms} ms before to {self.after_ms} ms after, grace {self.grace_ms} ms"


def tumbling(size_ms: int, *, grace_ms: int = 0) -> TimeWindows:
    """Windows side by side: each record is in one."""
    return TimeWindows(size_ms, size_ms, grace_ms)


def hopping(size_ms: int, advance_ms: int, *, grace_ms: int = 0) -> TimeWindows:
    """Overlapping windows: each record is in size / advance of them."""
    return TimeWindows(size_ms, advance_ms, grace_ms)


def sliding(difference_ms: int, *, grace_ms: int = 0) -> SlidingWindows:
    return SlidingWindows(difference_ms, grace_ms)


def session(gap_ms: int, *, grace_ms: int = 0) -> SessionWindows:
    return SessionWindows(gap_ms, grace_ms)


def within(difference_ms: int, *, grace_ms: int = 0) -> JoinWindows:
    """As much before as after."""
    _at_least("a join's time difference", difference_ms, 0)
    return JoinWindows(difference_ms, difference_ms, grace_ms)
