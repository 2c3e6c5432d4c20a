"""What a producer may send: refusals carry Kafka's error codes, and nothing that lies gets in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.records.batch import BatchHeader, read_header
from millstream.records.building import assemble, encode_batch
from millstream.records.codecs import Codec, Limits, compress
from millstream.records.reading import decode_records
from millstream.records.validation import RECORD_ERRORS_MAX, RejectedRecords, RejectedTimestamps, Rules, check_batch
from tests.records.strategies import mangled, record_lists
from tests.support.batches import Record, encode_records

NOW_MS = 2_000
RECORDS = [Record(b"v", b"a", [("h", b"1")], 1_500), Record(b"v2", None, [], 1_501), Record(None, b"c", [], 1_400)]
ANY_TIME = Rules(timestamp_after_max_ms=2**63 - 1, batch_bytes_max=2**31 - 1)
HONEST = read_header(encode_batch([(r.key, r.value, r.headers, r.timestamp_ms) for r in RECORDS]))


def lying(payload: bytes | None = None, codec: int = Codec.NONE, **fields: int) -> bytes:
    """A batch of RECORDS with other header fields, or another inside, and the CRC that fits."""
    header = HONEST._replace(attributes=codec)._replace(**fields)
    return bytes(assemble(header, compress(codec, encode_records(RECORDS) if payload is None else payload)))


def check(batch: bytes, rules: Rules = ANY_TIME, **options: bool) -> BatchHeader:
    return check_batch(memoryview(b"before" + batch), 6, 6 + len(batch), rules, NOW_MS, **options)


def refusal(batch: bytes, rules: Rules = ANY_TIME, **options: bool) -> ErrorCode:
    with pytest.raises(BrokerError) as raised:
        check(batch, rules, **options)
    return raised.value.code


@given(record_lists, st.sampled_from(list(Codec)))
def test_an_honest_batch_is_accepted(records: list[Any], codec: Codec) -> None:
    batch = encode_batch(records, codec=codec)
    assert check(bytes(batch)) == read_header(batch)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"magic": 0}, ErrorCode.INVALID_RECORD),
        ({"magic": 1}, ErrorCode.INVALID_RECORD),
        ({"magic": 3}, ErrorCode.CORRUPT_MESSAGE),
        ({"magic": -1}, ErrorCode.CORRUPT_MESSAGE),
        ({"base_offset": 3}, ErrorCode.INVALID_RECORD),
        ({"base_offset": -1}, ErrorCode.INVALID_RECORD),
        ({"count": 0}, ErrorCode.INVALID_RECORD),
        ({"count": 0, "last_offset_delta": -1}, ErrorCode.INVALID_RECORD),
        ({"count": -1, "last_offset_delta": -2}, ErrorCode.INVALID_RECORD),
        ({"count": 2}, ErrorCode.INVALID_RECORD),
        ({"count": 2, "last_offset_delta": 1}, ErrorCode.INVALID_RECORD),
        ({"count": 4, "last_offset_delta": 3}, ErrorCode.INVALID_RECORD),
        ({"last_offset_delta": 5}, ErrorCode.INVALID_RECORD),
        ({"count": 2**31 - 1, "last_offset_delta": 2**31 - 2}, ErrorCode.MESSAGE_TOO_LARGE),
        ({"producer_id": 5, "producer_epoch": 0}, ErrorCode.INVALID_RECORD),
        ({"producer_id": 5, "base_sequence": 0}, ErrorCode.INVALID_RECORD),
    ],
    ids=str,
)
def test_headers_that_lie(codec: Codec, fields: dict[str, int], code: ErrorCode) -> None:
    assert refusal(lying(None, codec, **fields)) == code


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    ("bits", "code"),
    [(0x20, ErrorCode.INVALID_RECORD), (0x10, ErrorCode.INVALID_RECORD), (0x08, ErrorCode.INVALID_TIMESTAMP)],
)
def test_attributes_that_a_producer_may_not_set(codec: Codec, bits: int, code: ErrorCode) -> None:
    assert refusal(lying(codec=codec, attributes=codec | bits)) == code


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs_are_refused(codec: int) -> None:
    assert refusal(lying(attributes=codec)) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_zstd_is_refused_where_the_request_is_too_old_for_it() -> None:
    batch = lying(codec=Codec.ZSTD)
    check(batch)
    assert refusal(batch, zstd=False) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(encode_records(RECORDS) + b"x", id="a byte more"),
        pytest.param(encode_records(RECORDS)[:-1], id="a byte less"),
        pytest.param(b"", id="nothing"),
        pytest.param(b"\xff" * 40, id="varints without end"),
        pytest.param(encode_records(RECORDS[:1]) * 3, id="three times the offset delta 0"),
    ],
)
def test_insides_that_lie(codec: Codec, inside: bytes) -> None:
    assert refusal(lying(inside, codec=codec)) == ErrorCode.INVALID_RECORD


def test_a_wrong_crc_is_corrupt() -> None:
    batch = bytearray(lying())
    batch[-1] ^= 1
    assert refusal(bytes(batch)) == ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [-(2**31), -4, 0, 13, 48])
def test_a_length_that_cannot_be_is_corrupt(length: int) -> None:
    batch = bytearray(lying())
    batch[8:12] = length.to_bytes(4, "big", signed=True)
    assert refusal(bytes(batch)) == ErrorCode.CORRUPT_MESSAGE


def test_exactly_one_batch_is_taken() -> None:
    batch = lying()
    assert refusal(b"") == ErrorCode.INVALID_RECORD
    assert refusal(batch[:60]) == ErrorCode.INVALID_RECORD
    assert refusal(batch[:-1]) == ErrorCode.INVALID_RECORD
    assert refusal(batch + batch) == ErrorCode.INVALID_RECORD
    assert refusal(batch + b"x") == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_a_payload_that_does_not_decompress_is_corrupt(codec: Codec) -> None:
    batch = assemble(HONEST._replace(attributes=codec), b"\0garbage, garbage")
    assert refusal(bytes(batch)) == ErrorCode.CORRUPT_MESSAGE


def test_a_bomb_is_too_large() -> None:
    bomb = lying(bytes(1 << 20), codec=Codec.ZSTD)
    assert refusal(bomb, ANY_TIME._replace(limits=Limits(1 << 18, 1 << 20))) == ErrorCode.MESSAGE_TOO_LARGE


def test_max_message_bytes_counts_the_whole_batch() -> None:
    batch = lying()
    check(batch, ANY_TIME._replace(batch_bytes_max=len(batch)))
    assert refusal(batch, ANY_TIME._replace(batch_bytes_max=len(batch) - 1)) == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_names_the_records_without_a_key(codec: Codec) -> None:
    with pytest.raises(RejectedRecords) as raised:
        check(lying(codec=codec), ANY_TIME._replace(compacted=True))
    assert [index for index, _ in raised.value.record_errors] == [1]


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(("before", "after", "bad"), [(550, 0, [2]), (10_000, -500, [1]), (499, 0, [0, 2])])
def test_timestamps_out_of_range_are_named(codec: Codec, before: int, after: int, bad: list[int]) -> None:
    rules = ANY_TIME._replace(timestamp_before_max_ms=before, timestamp_after_max_ms=after)
    with pytest.raises(RejectedTimestamps) as raised:
        check(lying(codec=codec), rules)
    assert [index for index, _ in raised.value.record_errors] == bad
    check(lying(codec=codec), rules._replace(log_append_time=True))


def test_a_bad_timestamp_names_keyless_records_as_well() -> None:
    rules = ANY_TIME._replace(compacted=True, timestamp_before_max_ms=550)
    with pytest.raises(RejectedTimestamps) as raised:
        check(lying(), rules)
    assert [index for index, _ in raised.value.record_errors] == [1, 2]


def test_the_list_of_bad_records_is_finite() -> None:
    batch = encode_batch([(None, b"", [], 0)] * (RECORD_ERRORS_MAX + 5))
    with pytest.raises(RejectedRecords) as raised:
        check(bytes(batch), ANY_TIME._replace(compacted=True))
    assert len(raised.value.record_errors) == RECORD_ERRORS_MAX


def test_a_record_without_a_timestamp_has_no_range() -> None:
    check(bytes(encode_batch([(b"a", b"b", [], -1)])), Rules(timestamp_before_max_ms=1))


@pytest.mark.parametrize("codec", list(Codec))
def test_the_true_max_timestamp_is_found(codec: Codec) -> None:
    assert check(lying(codec=codec, max_timestamp=9)).max_timestamp == 1_501


def test_header_only_validation_does_not_look_inside_except_for_compacted_topics() -> None:
    batch = lying(b"anything", producer_id=3, producer_epoch=0, base_sequence=0)
    rules = ANY_TIME._replace(walk_records=False)
    assert check(batch, rules) == read_header(batch)
    assert refusal(batch, rules._replace(compacted=True)) == ErrorCode.INVALID_RECORD
    assert refusal(batch, rules._replace(timestamp_after_max_ms=-1_000)) == ErrorCode.INVALID_TIMESTAMP


@given(record_lists, st.sampled_from(list(Codec)), st.data())
def test_what_is_accepted_can_be_read(records: list[Any], codec: Codec, data: st.DataObject) -> None:
    """Whatever the bytes: a declared refusal, or a batch whose records all decode with the offsets 0, 1, 2, ..."""
    honest = encode_batch(records, codec=codec)
    if data.draw(st.booleans()):
        batch = data.draw(mangled(bytes(honest)))
    else:
        batch = bytes(assemble(read_header(honest), data.draw(mangled(bytes(honest[61:])))))
    try:
        header = check(batch)
    except BrokerError:
        return
    decoded = decode_records(batch, check_crc=True)
    assert [record.offset for record in decoded] == list(range(header.count))
    assert max(-1, *(record.timestamp for record in decoded)) == header.max_timestamp
