"""Producer snapshots: the state of all producers of a log at one offset, in Kafka's binary form.

    version int16 = 1 | crc uint32 | count int32 | count * (producer id int64, epoch int16, last sequence int32,
    last offset int64, offset delta int32, timestamp int64, coordinator epoch int32, first offset of txn int64)

The CRC-32C covers what follows it. Of the last five batches of a producer only the newest is kept, as in Kafka: a
duplicate of an older one is answered with OUT_OF_ORDER_SEQUENCE_NUMBER after a restart.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812  # it is a class
from typing import TYPE_CHECKING, NamedTuple

from crc32c import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable

_VERSION = 1
_HEAD = Struct(">hIi")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")
_CRC_END = 6


class CorruptSnapshot(Exception):
    """A snapshot that was not written to its end; the one before it counts."""


class SnapshotEntry(NamedTuple):
    """One producer."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    txn_first_offset: int


def encode(entries: Iterable[SnapshotEntry]) -> bytes:
    packed = [_ENTRY.pack(*entry) for entry in entries]
    body = _COUNT.pack(len(packed)) + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(body), len(packed)) + body[_COUNT.size :]


def decode(content: bytes) -> list[SnapshotEntry]:
    try:
        version, crc, count = _HEAD.unpack_from(content)
    except StructError as error:
        raise CorruptSnapshot("the snapshot is cut off") from error
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version} is not known")
    if crc32c(content[_CRC_END:]) != crc:
        raise CorruptSnapshot("the checksum is wrong")
    if count < 0 or len(content) != _HEAD.size + count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} producers do not fit {len(content)} bytes")
    return [SnapshotEntry(*fields) for fields in _ENTRY.iter_unpack(content[_HEAD.size :])]
