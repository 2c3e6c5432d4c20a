"""Which partition a record goes to.

A key always goes where Java's producer sends it. Records without a key stick to one partition for a while and then
move to another at random (KIP-794), so that they are spread, but in whole batches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.records.partitioning import partition_for_key

if TYPE_CHECKING:
    from millstream.runtime.ports import Random

STICKY_BYTES = 16_384


class Partitioner:
    """Chooses partitions of one topic."""

    def __init__(self, partitions: int, random: Random, *, sticky_bytes: int = STICKY_BYTES) -> None:
        self._partitions = partitions
        self._random = random
        self._sticky_bytes = sticky_bytes
        self._current = random.below(partitions)
        self._bytes = 0

    def choose(self, key: bytes | None, size_bytes: int) -> int:
        """The partition for a record of about this size."""
        if key is not None:
            return partition_for_key(key, self._partitions)
        if self._bytes >= self._sticky_bytes:
            self.move_on()
        self._bytes += size_bytes
        return self._current

    def move_on(self) -> None:
        """A batch is complete: the next records without a key go elsewhere."""
        self._bytes = 0
        if self._partitions > 1:
            self._current = (self._current + 1 + self._random.below(self._partitions - 1)) % self._partitions
