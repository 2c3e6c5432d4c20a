"""Twenty ways to cut at once: each partition has records of its own, and cuts of its own.

State and stream time are kept by partition, so a micro-batch that brings every partition its next piece tries as many
cuts as there are partitions. Keys begin with the partition's number, which tells results apart. The driver, which knows
one partition only, is asked for each of them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tests.streams.memory_topics import Line, Stored, driven_everywhere

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams import Topology

WAYS = 20


class Cuts:
    """For each partition its records, in pieces; piece n of all of them is micro-batch n."""

    def __init__(
        self, seed: str, make: Callable[[random.Random, bytes], list[Line]], batches: int, *, ways: int = WAYS
    ) -> None:
        self.pieces: list[list[list[Line]]] = []
        for partition in range(ways):
            dice = random.Random(f"{seed} {partition}")
            lines = make(dice, f"{partition:02}".encode())
            at = sorted(dice.randint(0, len(lines)) for _ in range(batches - 1))
            bounds = [0, *at, len(lines)]
            self.pieces.append([lines[bounds[n] : bounds[n + 1]] for n in range(batches)])
        self.batches = batches

    def batch(self, number: int) -> list[tuple[int, Line]]:
        """The records of a micro-batch, each with its partition."""
        return [(partition, line) for partition, pieces in enumerate(self.pieces) for line in pieces[number]]

    def expected(self, topology: Topology, topic: str) -> list[Stored]:
        """What the driver writes to a topic, of all partitions."""
        return self.expected_everywhere(topology)[topic]

    def expected_everywhere(self, topology: Topology) -> defaultdict[str, list[Stored]]:
        """The same of all topics."""
        found: defaultdict[str, list[Stored]] = defaultdict(list)
        for pieces in self.pieces:
            for topic, written in driven_everywhere(topology, pieces).items():
                found[topic] += written
        return found


def as_table(records: list[Stored]) -> dict[bytes | None, tuple[Any, int]]:
    """The last value and time of each key that is not deleted."""
    rows = {key: (value, time_ms) for key, value, time_ms in records}
    return {key: row for key, row in rows.items() if row[0] is not None}


def as_stream(records: list[Stored]) -> list[Stored]:
    """In an order that does not depend on the partitions'."""
    return sorted(records, key=repr)
