"""Ranges of offsets, and how they are cut into tasks."""

from __future__ import annotations

from heapq import heapify, heapreplace
from itertools import pairwise
from typing import NamedTuple


class Range(NamedTuple):
    """What one task reads: the offsets from `start` up to, not including, `end`."""

    topic: str
    topic_id: str
    partition: int
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start

    def split(self, pieces: int) -> list[Range]:
        """Parts of nearly the same size, in order."""
        cuts = [self.start + self.size * index // pieces for index in range(pieces + 1)]
        return [self._replace(start=start, end=end) for start, end in pairwise(cuts) if start < end]


def tasks_of(ranges: list[Range], *, at_least: int | None, records_max: int | None) -> list[Range]:
    """The ranges that have anything in them, cut until no part has more than `records_max` offsets and there are
    `at_least` of them, the largest parts first."""
    tasks = [found for found in ranges if found.size > 0]
    if records_max is not None:
        tasks = [part for found in tasks for part in found.split(-(-found.size // records_max))]
    if at_least is None or len(tasks) >= at_least or not tasks:
        return tasks
    pieces = [1] * len(tasks)
    largest: list[tuple[float, int]] = [(-found.size, index) for index, found in enumerate(tasks)]
    heapify(largest)
    for _ in range(min(at_least, sum(found.size for found in tasks)) - len(tasks)):
        index = largest[0][1]
        pieces[index] += 1
        heapreplace(largest, (-tasks[index].size / pieces[index], index))
    return [part for found, count in zip(tasks, pieces, strict=True) for part in found.split(count)]
