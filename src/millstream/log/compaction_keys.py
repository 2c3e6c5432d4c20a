"""The newest offset of every key, in bounded memory.

Short keys stand for themselves. Longer ones are folded to the 16 bytes of a BLAKE2b hash, where Kafka takes MD5: with
MD5 anybody can make two keys with one hash, and have one value replace the other. A folded key is longer than any
short one, so the two kinds cannot meet.
"""

from __future__ import annotations

from hashlib import blake2b

FOLDED_BYTES = 16
BYTES_PER_KEY = 200
"""What an entry costs: two objects and a slot of the dictionary."""


def fold(key: bytes) -> bytes:
    return key if len(key) < FOLDED_BYTES else blake2b(key, digest_size=FOLDED_BYTES).digest()


class NewestOffsets:
    """Key -> the last offset seen, for the dirty part of a log up to `latest_offset`."""

    __slots__ = ("_keys_max", "_offsets", "latest_offset")

    def __init__(self, keys_max: int, first_dirty_offset: int) -> None:
        self._offsets: dict[bytes, int] = {}
        self._keys_max = keys_max
        self.latest_offset = first_dirty_offset - 1

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: int) -> bool:
        """False if there is no room for another key; nothing behind `latest_offset` counts then."""
        folded = fold(key)
        if len(self._offsets) >= self._keys_max and folded not in self._offsets:
            return False
        self._offsets[folded] = offset
        self.latest_offset = offset
        return True

    def replaced(self, key: bytes, offset: int) -> bool:
        """Whether a newer record of the key was seen."""
        return self._offsets.get(fold(key), -1) > offset

    def reached(self, offset: int) -> None:
        """Everything up to `offset` was looked at, whether there was a record or a gap (KAFKA-8764)."""
        self.latest_offset = max(self.latest_offset, offset)
