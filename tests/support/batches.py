"""Record batches built by hand, so that tests can lie in any field and benchmarks can send without a client.

Independent of `millstream.records` on purpose: the two check each other. Plain Python, a record at a time: slow is
fine here.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import crc32c

if TYPE_CHECKING:
    from collections.abc import Sequence

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
HEADER_BYTES = 61
CRC_FROM = 21
_HEADER = struct.Struct(">qiibIhiqqqhii")


class Record(NamedTuple):
    """One record as a client sees it."""

    value: bytes | None
    key: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp_ms: int = 0


def varint(number: int) -> bytes:
    """Zigzag, seven bits at a time, least first."""
    number = (number << 1) ^ (number >> 63)
    out = bytearray()
    while number & ~0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def encode_record(record: Record, offset_delta: int, base_timestamp_ms: int) -> bytes:
    body = (
        b"\0"
        + varint(record.timestamp_ms - base_timestamp_ms)
        + varint(offset_delta)
        + _sized(record.key)
        + _sized(record.value)
        + varint(len(record.headers))
        + b"".join(_sized(name.encode()) + _sized(value) for name, value in record.headers)
    )
    return varint(len(body)) + body


def encode_records(records: Sequence[Record]) -> bytes:
    """The part of a batch behind its header, not compressed."""
    base = records[0].timestamp_ms
    return b"".join(encode_record(record, delta, base) for delta, record in enumerate(records))


def seal(
    payload: bytes,
    count: int,
    *,
    codec: int = NONE,
    attributes: int | None = None,
    last_offset_delta: int | None = None,
    base_timestamp_ms: int = 0,
    max_timestamp_ms: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    base_offset: int = 0,
    leader_epoch: int = -1,
    magic: int = 2,
    length: int | None = None,
    crc: int | None = None,
) -> bytes:
    """A batch around a payload; whatever is not given is what an honest client would write."""
    batch = bytearray(HEADER_BYTES) + payload
    _HEADER.pack_into(
        batch,
        0,
        base_offset,
        len(batch) - 12 if length is None else length,
        leader_epoch,
        magic,
        0,
        codec if attributes is None else attributes,
        count - 1 if last_offset_delta is None else last_offset_delta,
        base_timestamp_ms,
        base_timestamp_ms if max_timestamp_ms is None else max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    checksum = crc32c.crc32c(memoryview(batch)[CRC_FROM:]) if crc is None else crc
    struct.pack_into(">I", batch, 17, checksum)
    return bytes(batch)


def batch_of(*records: Record, **fields: int) -> bytes:
    """An honest batch of these records; `fields` as in `seal`."""
    stamps = [record.timestamp_ms for record in records]
    fields = {"base_timestamp_ms": stamps[0], "max_timestamp_ms": max(stamps)} | fields
    return seal(encode_records(records), len(records), **fields)
