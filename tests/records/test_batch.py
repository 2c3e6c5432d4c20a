"""Headers, and what is stamped in place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.records import batch
from millstream.records.building import encode_batch, end_transaction_marker
from millstream.records.reading import control_record, decode_records
from tests.support import batches

RECORDS = [(b"k", b"v", [("h", b"x")], 1_000), (None, b"w", [], 3_000), (b"z", None, [], 2_000)]


def test_a_header_is_61_bytes() -> None:
    assert batch.HEADER_BYTES == 61


def test_a_built_batch_is_the_one_that_is_built_by_hand() -> None:
    ours = encode_batch(
        RECORDS, base_offset=9, leader_epoch=4, producer_id=7, producer_epoch=1, base_sequence=3, transactional=True
    )
    by_hand = batches.batch_of(
        *(batches.Record(value, key, headers, stamp) for key, value, headers, stamp in RECORDS),
        base_offset=9,
        leader_epoch=4,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
        attributes=batch.TRANSACTIONAL_BIT,
    )
    assert bytes(ours) == by_hand


def test_stamping_offset_and_epoch_leaves_the_crc_valid() -> None:
    buffer = bytearray(b"junk") + encode_batch(RECORDS)
    batch.stamp(buffer, 4, 123_456_789_012, 42)
    header = batch.read_header(buffer, 4)
    assert (header.base_offset, header.leader_epoch) == (123_456_789_012, 42)
    assert header.last_offset == 123_456_789_014
    assert batch.crc_of(buffer, 4, header.size) == header.crc


def test_log_append_time_is_the_time_of_every_record() -> None:
    buffer = encode_batch(RECORDS)
    batch.stamp_log_append_time(buffer, 0, len(buffer), 77_000)
    assert batch.read_header(buffer).is_log_append_time
    assert [record.timestamp for record in decode_records(buffer, check_crc=True)] == [77_000] * 3


def test_a_wrong_max_timestamp_is_corrected_with_the_crc() -> None:
    buffer = encode_batch(RECORDS)
    right = bytes(buffer)
    batch.stamp_max_timestamp(buffer, 0, len(buffer), 5)
    assert bytes(buffer) != right
    decode_records(buffer, check_crc=True)
    batch.stamp_max_timestamp(buffer, 0, len(buffer), 3_000)
    assert bytes(buffer) == right


@pytest.mark.parametrize(
    ("base", "delta", "last"), [(0, 2, 2), (2**31 - 1, 0, 2**31 - 1), (2**31 - 2, 2, 0), (-1, 4, -1)]
)
def test_sequences_wrap(base: int, delta: int, last: int) -> None:
    header = batch.read_header(encode_batch(RECORDS))._replace(base_sequence=base, last_offset_delta=delta)
    assert header.last_sequence == last


@pytest.mark.parametrize("commit", [True, False])
def test_a_marker_says_how_a_transaction_ended(commit: bool) -> None:
    marker = end_transaction_marker(
        commit=commit, producer_id=5, producer_epoch=2, coordinator_epoch=13, timestamp=1_000
    )
    header = batch.read_header(marker)
    assert header.is_control
    assert header.is_transactional
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (5, 2, -1)
    assert control_record(marker)[:2] == (int(commit), 13)


@given(st.lists(st.integers(-(2**15), 2**15 - 1), min_size=1, max_size=1))
def test_flags_follow_from_the_attributes(attributes: list[int]) -> None:
    header = batch.read_header(encode_batch(RECORDS))._replace(attributes=attributes[0])
    assert header.codec == attributes[0] & 7
    assert (header.delete_horizon_ms is None) == (not attributes[0] & 0x40)
