"""Randomness as an argument: the two things that decisions ask for. The ports' Random fits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import MutableSequence

    from millstream.protocol.uuid import Uuid

T = TypeVar("T")


class Randomness(Protocol):
    """Where ids and dice come from; a seeded one repeats a run."""

    def uuid(self) -> Uuid: ...
    def below(self, bound: int) -> int: ...


def shuffle(items: MutableSequence[T], random: Randomness) -> None:
    """Fisher and Yates, in place."""
    for last in range(len(items) - 1, 0, -1):
        other = random.below(last + 1)
        items[last], items[other] = items[other], items[last]
