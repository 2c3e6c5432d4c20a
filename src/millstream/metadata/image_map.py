"""A mapping that never changes and whose successor shares almost everything with it.

An image of 10,000 topics must not be copied because one of them changed. A `SharedMap` is a large dictionary that
many successors share and a small one with what changed since; changing k entries copies the small one. Once the
changes outgrow the square root of the whole, they are folded into a new large dictionary, so a change costs
O(sqrt n) at most and a look-up costs two dictionary reads.

A hash trie would have a better bound, but in plain Python its look-ups cost ten times as much, and look-ups are what
an image is for. Iteration goes by insertion as in a dictionary, so it is the same in every run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

# Below this many changes, copying them is cheaper than thinking about it.
CHANGES_KEPT_MIN = 32


class Gone:
    """Marks a removed entry among changes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "GONE"


GONE: Final = Gone()


class SharedMap(Mapping[K, V], Generic[K, V]):
    """A persistent mapping: see the module's docstring. Values may be None, never GONE."""

    __slots__ = ("_base", "_changes", "_length")

    def __init__(self, entries: Mapping[K, V] | None = None) -> None:
        self._base: dict[K, V] = dict(entries) if entries else {}
        self._changes: dict[K, V | Gone] = {}
        self._length = len(self._base)

    def with_changes(self, changes: Mapping[K, V | Gone]) -> SharedMap[K, V]:
        """The mapping after `changes`, where GONE removes a key. Itself, if there are none."""
        if not changes:
            return self
        successor: SharedMap[K, V] = SharedMap.__new__(SharedMap)
        merged = {**self._changes, **changes}
        if len(merged) > CHANGES_KEPT_MIN and len(merged) * len(merged) > len(self._base):
            folded: dict[Any, Any] = {**self._base, **merged}
            for key, value in merged.items():
                if value is GONE:
                    del folded[key]
            successor._base, successor._changes, successor._length = folded, {}, len(folded)
        else:
            length = self._length
            for key, value in changes.items():
                length += (value is not GONE) - (key in self)
            successor._base, successor._changes, successor._length = self._base, merged, length
        return successor

    def __getitem__(self, key: K) -> V:
        if self._changes:
            changed = self._changes.get(key)
            if changed is not None or key in self._changes:
                if isinstance(changed, Gone):
                    raise KeyError(key)
                return changed  # type: ignore[return-value]  # a stored None is a value
        return self._base[key]

    def __contains__(self, key: object) -> bool:
        if key in self._changes:
            return self._changes[key] is not GONE
        return key in self._base

    def __iter__(self) -> Iterator[K]:
        changes = self._changes
        if not changes:
            yield from self._base
            return
        for key in self._base:
            if changes.get(key) is not GONE:
                yield key
        for key, value in changes.items():
            if value is not GONE and key not in self._base:
                yield key

    def __len__(self) -> int:
        return self._length

    def __eq__(self, other: object) -> bool:
        if isinstance(other, SharedMap) and other._base is self._base and other._changes is self._changes:
            return True
        return Mapping.__eq__(self, other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SharedMap({dict(self)!r})"
