"""The order in which Java's HashMap and HashSet walk over their keys.

Kafka's uniform assignor goes through members, topics and partitions in that order, so it decides who gets the odd
partition and which partitions move. It is a pure function of the keys: the bucket of a key follows from its hash code
and the size of the table, the size of the table from how many keys there are; keys in one bucket keep the order in
which they came.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from millstream.protocol.uuid import Uuid

K = TypeVar("K")

_TABLE_MIN = 16
_MASK = 0xFFFFFFFF


@lru_cache(maxsize=1 << 16)
def string_hash(text: str) -> int:
    """String.hashCode, as an unsigned number."""
    value = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & _MASK
    return value


def uuid_hash(uuid: Uuid) -> int:
    """Uuid.hashCode of Kafka's own class, as an unsigned number."""
    mixed = int.from_bytes(uuid[:8]) ^ int.from_bytes(uuid[8:])
    return (mixed >> 32) ^ (mixed & _MASK)


def int_hash(number: int) -> int:
    return number & _MASK


def grown_order(keys: Collection[K], hash_of: Callable[[K], int]) -> list[K]:
    """The order of a HashMap that the keys were put into one by one."""
    if len(keys) < 2:
        return list(keys)
    size = _TABLE_MIN
    while len(keys) > size * 3 // 4:
        size *= 2
    return _by_bucket(keys, hash_of, size)


def copied_order(keys: Collection[K], hash_of: Callable[[K], int]) -> list[K]:
    """The order of a HashSet that was made from the collection at once: its table is sized in advance."""
    if len(keys) < 2:
        return list(keys)
    wanted = max(int(len(keys) / 0.75) + 1, _TABLE_MIN)
    return _by_bucket(keys, hash_of, 1 << (wanted - 1).bit_length())


def _by_bucket(keys: Collection[K], hash_of: Callable[[K], int], table_size: int) -> list[K]:
    mask = table_size - 1

    def bucket(key: K) -> int:
        code = hash_of(key)
        return (code ^ (code >> 16)) & mask

    return sorted(keys, key=bucket)
