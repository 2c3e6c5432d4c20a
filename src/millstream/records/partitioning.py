"""Which partition a key belongs to, as Java's producer decides: a key must land in the same one from everywhere."""

from __future__ import annotations

from millstream.records._walker import murmur2

__all__ = ["murmur2", "partition_for_key"]


def partition_for_key(key: bytes, partitions: int) -> int:
    """Java's DefaultPartitioner: the hash without its sign, modulo the number of partitions."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
