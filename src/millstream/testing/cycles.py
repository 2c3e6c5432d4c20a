"""Circles in a directed graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def find_cycle(edges: Mapping[str, Sequence[str]]) -> list[str]:
    """The nodes of one circle in its order; empty if there is none. Depth first, without recursion."""
    done: set[str] = set()
    for start in edges:
        if start in done:
            continue
        path = [start]
        on_path = {start: 0}
        turns = [iter(edges.get(start, ()))]
        while path:
            target = next(turns[-1], None)
            if target is None:
                turns.pop()
                finished = path.pop()
                del on_path[finished]
                done.add(finished)
            elif target in on_path:
                return path[on_path[target] :]
            elif target not in done:
                on_path[target] = len(path)
                path.append(target)
                turns.append(iter(edges.get(target, ())))
    return []
