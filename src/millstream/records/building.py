"""Building batches: for our own client, the metadata log, the coordinators' markers, recompression and tests."""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Final

from millstream.records import _walker
from millstream.records.batch import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    stamp_crc,
)
from millstream.records.codecs import Codec, compress

if TYPE_CHECKING:
    from collections.abc import Sequence

    Buffer = bytes | bytearray | memoryview
    NewRecord = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int]

_CONTROL_KEY: Final = Struct(">hh")
_END_MARKER: Final = Struct(">hi")


class ControlType(IntEnum):
    """What a control record is."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def encode_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    codec: int = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    log_append_time_ms: int | None = None,
) -> bytearray:
    """A batch of (key, value, headers, timestamp), with the offsets from `base_offset` on."""
    if not records:
        raise ValueError("a batch has at least one record")
    base_timestamp = records[0][3]
    payload = compress(codec, _walker.encode(records, base_timestamp), level)
    attributes = codec | (TRANSACTIONAL_BIT if transactional else 0) | (CONTROL_BIT if control else 0)
    max_timestamp = max(record[3] for record in records)
    if log_append_time_ms is not None:
        attributes |= LOG_APPEND_TIME_BIT
        max_timestamp = log_append_time_ms
    header = BatchHeader(
        base_offset=base_offset,
        batch_length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )
    return assemble(header, payload)


def assemble(header: BatchHeader, payload: Buffer) -> bytearray:
    """Header and stored payload as one batch; length and CRC are computed, the rest stands as given."""
    size = HEADER_BYTES + len(payload)
    batch = bytearray(size)
    HEADER.pack_into(batch, 0, *header._replace(batch_length=size - LENGTH_END))
    batch[HEADER_BYTES:] = payload
    stamp_crc(batch, 0, size)
    return batch


def control_batch(
    kind: int,
    value: bytes,
    timestamp: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    transactional: bool = False,
) -> bytearray:
    """One control record: its key is (version 0, type), its value what the type asks for."""
    return encode_batch(
        [(_CONTROL_KEY.pack(0, kind), value, (), timestamp)],
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=transactional,
        control=True,
    )


def end_transaction_marker(
    *,
    commit: bool,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The marker that ends a producer's transaction in a partition."""
    return control_batch(
        ControlType.COMMIT if commit else ControlType.ABORT,
        _END_MARKER.pack(0, coordinator_epoch),
        timestamp,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
    )


def empty_batch(header: BatchHeader) -> bytearray:
    """A batch whose records are all gone, and that stays for its offsets, its producer and its epoch."""
    emptied = header._replace(
        attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT), base_timestamp=NO_TIMESTAMP, count=0
    )
    return assemble(emptied, b"")
