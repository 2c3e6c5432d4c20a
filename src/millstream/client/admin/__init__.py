"""Every admin call of the protocol, as functions that take a client first.

A function that works on several things answers for each of them: a dictionary with the result or the Refusal.
`raise_first` turns that into an exception where one failure is a failure of the whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from millstream.client.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
K = TypeVar("K")


def raise_first(outcomes: Mapping[K, T | Refusal]) -> dict[K, T]:
    """The results alone; the first Refusal is raised instead if there is one."""
    results: dict[K, T] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, Refusal):
            raise outcome
        results[key] = outcome
    return results
