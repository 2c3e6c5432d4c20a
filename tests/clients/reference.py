"""The client that claims use for what they don't test: it sets topics up and reads back what another client wrote."""

from __future__ import annotations

from tests.clients.adapters.confluent_client import Confluent

Reference = Confluent


def murmur2(data: bytes) -> int:
    """Java's hash of a key, written from its published definition; the partition is its positive part modulo n."""
    mask = 0xFFFFFFFF
    multiplier = 0x5BD1E995
    value = (0x9747B28C ^ len(data)) & mask
    whole = len(data) & ~3
    for start in range(0, whole, 4):
        k = int.from_bytes(data[start : start + 4], "little")
        k = k * multiplier & mask
        k ^= k >> 24
        k = k * multiplier & mask
        value = value * multiplier & mask ^ k
    if rest := data[whole:]:
        value ^= int.from_bytes(rest, "little")
        value = value * multiplier & mask
    value ^= value >> 13
    value = value * multiplier & mask
    return value ^ value >> 15


def java_partition(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions
