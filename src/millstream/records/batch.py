"""The header of a record batch (magic 2): its layout, its flags, and the fields a broker stamps in place.

    base offset        int64    0   stamped by the leader
    batch length       int32    8   bytes that follow this field
    leader epoch       int32   12   stamped by the leader
    magic              int8    16   always 2
    crc                uint32  17   CRC-32C of everything from the attributes to the end
    attributes         int16   21   0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
    last offset delta  int32   23   stays when compaction takes records out
    base timestamp     int64   27   record timestamps count from here; with bit 6 the delete horizon
    max timestamp      int64   35   with LogAppendTime the timestamp of every record
    producer id        int64   43   -1: not idempotent
    producer epoch     int16   51
    base sequence      int32   53
    record count       int32   57
    records                    61   compressed as a whole

The CRC leaves out the base offset and the leader epoch, so that a leader can stamp both without computing it again.
A header is read with one `struct` call and never turned into more than one tuple: it is on the path of every append.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview

HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
LENGTH_END: Final = 12
"""Where the bytes that `batch_length` counts begin."""
MAGIC: Final = 2

BASE_OFFSET_AT: Final = 0
LENGTH_AT: Final = 8
LEADER_EPOCH_AT: Final = 12
MAGIC_AT: Final = 16
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
LAST_OFFSET_DELTA_AT: Final = 23
BASE_TIMESTAMP_AT: Final = 27
MAX_TIMESTAMP_AT: Final = 35
PRODUCER_ID_AT: Final = 43
PRODUCER_EPOCH_AT: Final = 51
BASE_SEQUENCE_AT: Final = 53
COUNT_AT: Final = 57

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_BIT: Final = 0x08
TRANSACTIONAL_BIT: Final = 0x10
CONTROL_BIT: Final = 0x20
DELETE_HORIZON_BIT: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

_INT64: Final = Struct(">q")
_INT32: Final = Struct(">i")
_UINT32: Final = Struct(">I")
_INT16: Final = Struct(">h")
_SEQUENCES: Final = 1 << 31


class BatchHeader(NamedTuple):
    """A batch's header as it stands in the bytes."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # the field's name on the wire; nobody counts a header's items

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return self.batch_length + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def has_producer(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2^31 - 1 to 0."""
        if self.base_sequence < 0:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) % _SEQUENCES

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and markers of this batch may go; None until it was cleaned a first time."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


class Record(NamedTuple):
    """One record, where somebody wants it as an object. None and empty are not the same."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header at `position`; struct.error if the buffer ends before it does. Nothing is checked."""
    return tuple.__new__(BatchHeader, HEADER.unpack_from(buffer, position))


def crc_of(buffer: Buffer, position: int, size: int) -> int:
    """The CRC-32C that a batch of `size` bytes at `position` should carry."""
    with memoryview(buffer) as view, view[position + ATTRIBUTES_AT : position + size] as covered:
        crc: int = crc32c(covered)
        return crc


def stamp(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Give the batch its place in the log. The CRC does not cover these two fields."""
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LEADER_EPOCH_AT, leader_epoch)


def stamp_crc(buffer: bytearray | memoryview, position: int, size: int) -> int:
    """Write the CRC of the batch as it now stands, and return it."""
    crc = crc_of(buffer, position, size)
    _UINT32.pack_into(buffer, position + CRC_AT, crc)
    return crc


def stamp_max_timestamp(buffer: bytearray | memoryview, position: int, size: int, max_timestamp: int) -> None:
    """Correct the max timestamp of a batch whose producer told another one; nothing is written if it is right."""
    if _INT64.unpack_from(buffer, position + MAX_TIMESTAMP_AT)[0] != max_timestamp:
        _INT64.pack_into(buffer, position + MAX_TIMESTAMP_AT, max_timestamp)
        stamp_crc(buffer, position, size)


def stamp_log_append_time(buffer: bytearray | memoryview, position: int, size: int, now_ms: int) -> None:
    """`message.timestamp.type=LogAppendTime`: every record of the batch has the broker's time."""
    (attributes,) = _INT16.unpack_from(buffer, position + ATTRIBUTES_AT)
    _INT16.pack_into(buffer, position + ATTRIBUTES_AT, attributes | LOG_APPEND_TIME_BIT)
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_AT, now_ms)
    stamp_crc(buffer, position, size)
