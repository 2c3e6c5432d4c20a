"""What a broker asks of a batch that a producer sent, before it becomes part of a log.

The order and the error codes follow Apache Kafka 4.3's, because clients act on them: CORRUPT_MESSAGE is sent again,
INVALID_RECORD is not. Those of its LogValidator are compared on the same bytes (tests/records/test_java.py); those that
Kafka checks before it (one batch, magic, base offset, size, zstd by version) were not run against a broker.

First the header: one batch and no more, magic 2, offsets, size, CRC, count, flags, producer. Then every record, unless
`walk_records` is off; on a compacted topic always, since there the keys matter.

Where Kafka is careless this is not. It accepts offset deltas that are not 0, 1, 2, ... in uncompressed batches, and
answers UNKNOWN_SERVER_ERROR to them in compressed ones; it accepts a producer id without an epoch, transactional
batches without a producer id, and the LogAppendTime bit from a producer. All of these are refused here: no client sends
them, and each would break a reader later.

A valid, uncompressed batch costs one tuple for its header and one for the walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from crc32c import crc32c

from millstream.protocol.errors import (
    BrokerError,
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    RecordTooLarge,
    UnsupportedCompression,
)
from millstream.records import _walker
from millstream.records.batch import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LENGTH_END,
    LOG_APPEND_TIME_BIT,
    MAGIC,
    NO_TIMESTAMP,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)
from millstream.records.codecs import DEFAULT_LIMITS, Codec, Limits, decompress

if TYPE_CHECKING:
    Buffer = bytes | bytearray | memoryview

RECORD_ERRORS_MAX: Final = 1_000
"""How many bad records of a batch are named one by one; a batch may hold a million."""
_INT64_MIN: Final = -(1 << 63)
_INT64_MAX: Final = (1 << 63) - 1
_LEAST_LENGTH: Final = 14  # below it Kafka takes the length itself for corrupt


class Rules(NamedTuple):
    """What a topic asks of the batches produced to it. Made once per change of its settings."""

    batch_bytes_max: int = 1_048_588
    """`max.message.bytes`."""
    compacted: bool = False
    log_append_time: bool = False
    timestamp_before_max_ms: int = _INT64_MAX
    timestamp_after_max_ms: int = 3_600_000
    walk_records: bool = True
    """False for `millstream.record.validation=header`."""
    records_max: int = 1_000_000
    limits: Limits = DEFAULT_LIMITS


class RejectedRecords(InvalidRecord):
    """Records that break a rule, named one by one (KIP-467)."""

    def __init__(self, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


class RejectedTimestamps(InvalidTimestamp):
    """Records of which at least one has a timestamp out of range, named one by one (KIP-467)."""

    def __init__(self, message: str, record_errors: list[tuple[int, str]]) -> None:
        super().__init__(message)
        self.record_errors = record_errors


def check_batch(  # noqa: C901  a flat list of refusals reads better than a nest of functions
    buffer: Buffer, position: int, limit: int, rules: Rules, now_ms: int, *, zstd: bool = True
) -> BatchHeader:
    """The header of the one batch in buffer[position:limit], if a producer may append it to such a topic.

    Its `max_timestamp` is the true one of the records, whatever the producer wrote (see `batch.stamp_max_timestamp`).
    `zstd` is whether the version of the request allows it.
    """
    size = limit - position
    if size < HEADER_BYTES:
        raise _not_one_batch(buffer, position, limit)
    header = read_header(buffer, position)
    (base_offset, batch_length, _, magic, crc, attributes, last_offset_delta, _, _, _, _, _, count) = header
    if magic != MAGIC or batch_length + LENGTH_END != size:
        raise _not_one_batch(buffer, position, limit)
    codec = attributes & CODEC_MASK
    if codec and (codec > Codec.ZSTD or (codec == Codec.ZSTD and not zstd)):
        raise UnsupportedCompression(f"codec {codec} cannot be used in this version of the request")
    if base_offset != 0:
        raise InvalidRecord(f"the base offset of a produced batch is 0, not {base_offset}")
    if size > rules.batch_bytes_max:
        raise RecordTooLarge(f"a batch of {size} bytes, where max.message.bytes is {rules.batch_bytes_max}")
    computed = crc32c(memoryview(buffer)[position + ATTRIBUTES_AT : limit])
    if computed != crc:
        raise CorruptMessage(f"the batch's CRC is {crc:#010x}, its bytes have {computed:#010x}")
    if count <= 0 or last_offset_delta != count - 1 or count > rules.records_max:
        raise _bad_count(header, rules)
    if attributes & (CONTROL_BIT | TRANSACTIONAL_BIT) or header.producer_id >= 0:
        _check_producer(header)
    if attributes & LOG_APPEND_TIME_BIT:
        raise RejectedTimestamps(
            "only a broker may set LogAppendTime",
            [(index, "the producer set LogAppendTime") for index in range(min(count, RECORD_ERRORS_MAX))],
        )
    low, high = (_INT64_MIN, _INT64_MAX) if rules.log_append_time else _timestamp_range(rules, now_ms)
    if not rules.walk_records and not rules.compacted:
        if not low <= header.max_timestamp <= high and header.max_timestamp != NO_TIMESTAMP:
            raise RejectedTimestamps("the batch's timestamps are out of range", [])
        return header
    if codec:
        with memoryview(buffer)[position + HEADER_BYTES : limit] as stored:
            records = decompress(codec, stored, rules.limits)
        return _check_records(header, records, 0, len(records), rules, low, high)
    return _check_records(header, buffer, position + HEADER_BYTES, limit, rules, low, high)


def _check_records(
    header: BatchHeader, records: Buffer, position: int, limit: int, rules: Rules, low: int, high: int
) -> BatchHeader:
    code, index, max_timestamp, _, keyless, out_of_range = _walker.validate(
        records, position, limit, header.count, header.base_timestamp, low, high
    )
    if code:
        raise InvalidRecord(str(_walker.BrokenRecords(code, index)))
    if out_of_range >= 0 or (keyless >= 0 and rules.compacted):
        raise _rejection(header, bytes(memoryview(records)[position:limit]), rules, low, high)
    return header if max_timestamp == header.max_timestamp else header._replace(max_timestamp=max_timestamp)


def _timestamp_range(rules: Rules, now_ms: int) -> tuple[int, int]:
    """The timestamps that CreateTime topics accept; `now_ms` is no negative number, so only the end can overflow."""
    high = now_ms + rules.timestamp_after_max_ms
    return now_ms - rules.timestamp_before_max_ms, min(high, _INT64_MAX)


def _not_one_batch(buffer: Buffer, position: int, limit: int) -> BrokerError:
    """Why these bytes are not exactly one batch of magic 2."""
    if limit - position < HEADER_BYTES:
        return InvalidRecord("there is no whole record batch")
    header = read_header(buffer, position)
    if header.batch_length < _LEAST_LENGTH:
        return CorruptMessage(f"a batch length of {header.batch_length} bytes")
    if not 0 <= header.magic <= MAGIC:
        return CorruptMessage(f"there is no magic {header.magic}")
    if header.magic != MAGIC:
        return InvalidRecord(f"a batch of magic {header.magic}, where only 2 is allowed")
    if header.size < HEADER_BYTES:
        return CorruptMessage(f"a batch of {header.size} bytes is smaller than its header")
    if header.size > limit - position:
        return InvalidRecord(f"a batch of {header.size} bytes in {limit - position}")
    return InvalidRecord("there has to be exactly one record batch")


def _bad_count(header: BatchHeader, rules: Rules) -> BrokerError:
    if header.count > rules.records_max and header.last_offset_delta == header.count - 1:
        return RecordTooLarge(f"a batch of {header.count} records, where {rules.records_max} are allowed")
    return InvalidRecord(f"{header.count} records do not fit the last offset delta {header.last_offset_delta}")


def _check_producer(header: BatchHeader) -> None:
    if header.is_control:
        raise InvalidRecord("clients are not allowed to write control records")
    if header.producer_id < 0:
        raise InvalidRecord("a transactional batch without a producer id")
    if header.base_sequence < 0 or header.producer_epoch < 0:
        raise InvalidRecord(
            f"producer {header.producer_id} with the sequence {header.base_sequence} and epoch {header.producer_epoch}"
        )


def _rejection(header: BatchHeader, payload: bytes, rules: Rules, low: int, high: int) -> BrokerError:
    """The slow way, for a batch that is refused: look at every record and name the bad ones."""
    errors: list[tuple[int, str]] = []
    bad_timestamps = False
    for index, (_, key, _, delta) in enumerate(_walker.keys(payload, header.count)):
        timestamp = header.base_timestamp + delta
        if key is None and rules.compacted:
            errors.append((index, "a compacted topic takes no record without a key"))
        elif timestamp != NO_TIMESTAMP and not low <= timestamp <= high:
            bad_timestamps = True
            errors.append((index, f"timestamp {timestamp} is outside of [{low}, {high}]"))
        if len(errors) == RECORD_ERRORS_MAX:
            break
    if bad_timestamps:
        return RejectedTimestamps("records were rejected because of their timestamps", errors)
    return RejectedRecords(f"records were rejected: {errors[0][1]}", errors)
