"""How a table's changes are held back."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Suppressed:
    """Until the window has closed (`final`), or for `wait_ms` of stream time; at most `records_max` are held."""

    wait_ms: int = 0
    final: bool = False
    records_max: int | None = None
    shut_down_when_full: bool = False
    name: str | None = None

    def __post_init__(self) -> None:
        if self.wait_ms < 0:
            raise ValueError(f"a time limit of {self.wait_ms} ms: it cannot be less than 0")


def until_window_closes(*, records_max: int | None = None, name: str | None = None) -> Suppressed:
    """One result for each window. When more than `records_max` wait, the driver stops: none may be lost or early."""
    return Suppressed(final=True, records_max=records_max, shut_down_when_full=True, name=name)


def until_time_limit(wait_ms: int, *, records_max: int | None = None, name: str | None = None) -> Suppressed:
    """The last of the changes of a key within so much stream time; sooner when more than `records_max` wait."""
    return Suppressed(wait_ms=wait_ms, records_max=records_max, name=name)
