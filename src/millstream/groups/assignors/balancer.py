"""Picks the least and the most loaded of some members while partitions move between them.

Members are sorted once, by load and number. From then on two ranges are walked: the least loaded ones at the front,
which all reach one more partition before anybody gets a second one, and the most loaded ones at the back, likewise
downwards. `loads` is written by the caller and only read when a range grows.
"""

from __future__ import annotations

NOBODY = -1


class Balancer:
    """Made once for a list of loads, then started for the readers of one topic after the other."""

    def __init__(self, loads: list[int]) -> None:
        self._loads = loads
        self._members: list[int] = []
        self._least_end = 0
        self._least_load = -1
        self._next_least = 0
        self._most_start = 0
        self._most_end = 0
        self._most_load = 1
        self._next_most = NOBODY

    def start(self, members: list[int]) -> int:
        """Begin with these members; the difference between the most and the least loaded of them."""
        loads = self._loads
        self._members = ordered = sorted(members, key=lambda member: (loads[member], member))
        self._least_end = 0
        self._least_load = loads[ordered[0]] - 1
        self._next_least = 0
        self._most_start = self._most_end = len(ordered)
        self._most_load = loads[ordered[-1]] + 1
        self._next_most = len(ordered) - 1
        return loads[ordered[-1]] - loads[ordered[0]]

    def next_least_loaded(self) -> int:
        if self._next_least >= self._least_end:
            self._least_load += 1
            while (
                self._least_end < len(self._members) and self._loads[self._members[self._least_end]] == self._least_load
            ):
                self._least_end += 1
            self._next_least = 0
        member = self._members[self._next_least]
        self._next_least += 1
        return member

    def next_most_loaded(self) -> int:
        """NOBODY once all are excluded."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                # Everybody in the range is excluded: go on with whoever comes next.
                self._most_load = self._loads[self._members[self._most_start - 1]]
            else:
                self._most_load -= 1
            while self._most_start > 0 and self._loads[self._members[self._most_start - 1]] == self._most_load:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return NOBODY
        member = self._members[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most_loaded(self) -> None:
        """The member that was just returned has nothing to give."""
        place, last = self._next_most + 1, self._most_end - 1
        self._members[place], self._members[last] = self._members[last], self._members[place]
        self._most_end -= 1

    def is_balanced(self) -> bool:
        return self._most_load - self._least_load <= 1
