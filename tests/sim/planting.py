"""Planted bugs: functions of the product replaced by wrong ones, and the claim that a simulation finds each.

A simulator that has never found a bug proves nothing. Each plant leaves out one rule that others have paid for, names
the rule of the simulator (or the anomaly of the history checker) that it breaks, and says within how many seeds that
rule finds it. Whatever else goes wrong meanwhile (an assertion of the product, a timeout, a crash elsewhere) proves
nothing of the rule and does not count. Plants are patches of tests; the product has no branches for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.testing.checking import Kind
from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

# What any bug may end in: these say that something is wrong, not what.
_SAYS_NOTHING = (
    "it comes to rest",
    "an exception that nobody handled",
    "no handler fails",
    "the machine finds itself in order",
)


@dataclass(frozen=True, slots=True)
class Plant:
    """One bug: what is wrong, the rule that finds it, how it is planted, and how many seeds are tried."""

    what: str
    rule: str
    plant: Callable[[pytest.MonkeyPatch], None]
    seeds: int

    def __post_init__(self) -> None:
        assert self.rule not in _SAYS_NOTHING, f"{self.what}: a plant names the rule that it breaks"

    def __str__(self) -> str:
        return self.what


def replaces(what: str, target: object, name: str, wrong: object, *, rule: str | Kind, seeds: int) -> Plant:
    """The common case: one function is replaced."""
    return Plant(what, named(rule), lambda patch: patch.setattr(target, name, wrong), seeds)


def named(rule: str | Kind) -> str:
    """A rule of the simulator is its own name; an anomaly of the history checker is reported by its value."""
    return rule.value if isinstance(rule, Kind) else rule


def must_be_found(plant: Plant, run: Callable[[int], object]) -> str:
    """Try seeds until one breaks the plant's rule; what was found."""
    others: list[str] = []
    for seed in range(plant.seeds):
        try:
            run(seed)
        except Violation as violation:
            if violation.rule == plant.rule:
                return f"seed {seed}: {violation}"
            others.append(f"seed {seed}: {violation}")
        except Exception as error:  # noqa: BLE001  # it is no proof, whatever it is, and the next seed is tried
            others.append(f"seed {seed}: {type(error).__name__} {error}")
    raise AssertionError(
        f"{plant.what}: {plant.rule!r} has not found it within {plant.seeds} seeds; "
        f"found instead: {'; '.join(others[:5]) or 'nothing'}"
    )
