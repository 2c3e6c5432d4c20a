"""Planted bugs: functions of the product replaced by wrong ones, and the claim that a simulation finds each.

A simulator that has never found a bug proves nothing. Each plant leaves out one rule that others have paid for, and
says within how many seeds it is found. Plants are patches of tests; the product has no branches for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.testing.violations import Violation

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest


@dataclass(frozen=True, slots=True)
class Plant:
    """One bug: what is wrong, how it is planted, and how many seeds are tried."""

    what: str
    plant: Callable[[pytest.MonkeyPatch], None]
    seeds: int

    def __str__(self) -> str:
        return self.what


def replaces(what: str, target: object, name: str, wrong: object, *, seeds: int) -> Plant:
    """The common case: one function is replaced."""
    return Plant(what, lambda patch: patch.setattr(target, name, wrong), seeds)


def must_be_found(plant: Plant, run: Callable[[int], object]) -> str:
    """Try seeds until one finds it; what was found."""
    for seed in range(plant.seeds):
        try:
            run(seed)
        except Violation as violation:
            return f"seed {seed}: {violation}"
        except (AssertionError, LookupError, RuntimeError) as error:
            # A bug may also run into an assertion of the product itself.
            return f"seed {seed}: {type(error).__name__} {error}"
    raise AssertionError(f"not found within {plant.seeds} seeds: {plant.what}")
