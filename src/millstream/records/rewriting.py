"""Batches made from batches: with fewer records (compaction), with another codec (`compression.type`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import CorruptMessage
from millstream.records import _walker
from millstream.records.batch import CODEC_MASK, DELETE_HORIZON_BIT, BatchHeader
from millstream.records.building import assemble, empty_batch
from millstream.records.codecs import DEFAULT_LIMITS, Codec, Limits, compress
from millstream.records.reading import payload_of, whole_header

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview


def recompress(
    buffer: Buffer, position: int, codec: int, level: int | None = None, *, limits: Limits = DEFAULT_LIMITS
) -> bytearray:
    """The same batch with its records in another codec. What the header says of them stays."""
    header = whole_header(buffer, position)
    payload = payload_of(buffer, position, header, limits)
    changed = header._replace(attributes=header.attributes & ~CODEC_MASK | codec)
    return assemble(changed, compress(codec, payload, level))


def rewrite_batch(
    header: BatchHeader, payload: bytes, kept: bytes, *, delete_horizon_ms: int | None = None
) -> bytearray:
    """The batch with only the records whose byte in `kept` is not 0, out of its decompressed `payload`.

    Offsets, epochs, producer and sequences stay as they were: the offsets of what is gone are a gap, and the sequence
    of the last record still follows from the last offset delta. A delete horizon takes the place of the base
    timestamp, and the record timestamps are counted from it. What kept nothing becomes a header without records.
    """
    retained = len(kept) - kept.count(0)
    if retained == 0:
        return empty_batch(header)
    attributes = header.attributes
    base_timestamp = header.base_timestamp
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = delete_horizon_ms
    try:
        remaining, max_timestamp = _walker.retain(payload, header.count, kept, header.base_timestamp, base_timestamp)
    except _walker.BrokenRecords as error:
        raise CorruptMessage(f"the batch at offset {header.base_offset} is broken: {error}") from error
    changed = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=header.max_timestamp if header.is_log_append_time else max_timestamp,
        count=retained,
    )
    return assemble(changed, remaining if header.codec == Codec.NONE else compress(header.codec, remaining))
