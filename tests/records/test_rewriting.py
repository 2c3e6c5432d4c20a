"""Compaction and recompression keep what they must."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.protocol.errors import CorruptMessage
from millstream.records.batch import read_header
from millstream.records.building import assemble, encode_batch
from millstream.records.codecs import Codec
from millstream.records.reading import decode_records, each_batch, find_timestamp, payload_of
from millstream.records.rewriting import recompress, rewrite_batch
from tests.records.strategies import mangled, record_lists

codecs = st.sampled_from(list(Codec))


@given(record_lists, codecs, st.data())
def test_only_what_is_kept_remains_with_its_offsets(records: list[Any], codec: Codec, data: st.DataObject) -> None:
    kept = bytes(data.draw(st.lists(st.integers(0, 1), min_size=len(records), max_size=len(records))))
    horizon = data.draw(st.one_of(st.none(), st.integers(0, 2**45)))
    batch = encode_batch(
        records, base_offset=100, codec=codec, producer_id=9, producer_epoch=1, base_sequence=8, leader_epoch=2
    )
    header = read_header(batch)
    rewritten = rewrite_batch(header, payload_of(batch, 0, header), kept, delete_horizon_ms=horizon)
    after = read_header(rewritten)
    assert decode_records(rewritten, check_crc=True) == [
        record for record, keep in zip(decode_records(batch), kept, strict=True) if keep
    ]
    same = ("base_offset", "last_offset_delta", "leader_epoch", "producer_id", "producer_epoch", "base_sequence")
    assert [getattr(after, name) for name in same] == [getattr(header, name) for name in same]
    assert after.last_sequence == header.last_sequence
    if any(kept):
        assert after.codec == codec
        assert after.delete_horizon_ms == horizon
        assert after.max_timestamp == max(r[3] for r, keep in zip(records, kept, strict=True) if keep)
    else:
        assert (after.count, after.size, after.max_timestamp) == (0, 61, header.max_timestamp)


def test_log_append_time_survives_a_rewrite() -> None:
    batch = encode_batch([(b"a", b"1", [], 5), (b"b", b"2", [], 6)], log_append_time_ms=9_000)
    header = read_header(batch)
    after = rewrite_batch(header, payload_of(batch, 0, header), b"\0\1", delete_horizon_ms=50_000)
    assert [(record.key, record.timestamp) for record in decode_records(after)] == [(b"b", 9_000)]


@given(record_lists, codecs, st.data())
def test_a_batch_that_lies_raises_and_nothing_else(records: list[Any], codec: Codec, data: st.DataObject) -> None:
    honest = encode_batch(records)
    batch = assemble(read_header(honest)._replace(attributes=codec), data.draw(mangled(bytes(honest[61:]))))
    header = read_header(batch)
    for call in (
        lambda: rewrite_batch(header, payload_of(batch, 0, header), b"\1" * header.count, delete_horizon_ms=7),
        lambda: decode_records(batch),
        lambda: find_timestamp(batch, 2**44),
    ):
        with suppress(CorruptMessage):
            call()


@given(record_lists, codecs, codecs)
def test_recompression_changes_the_codec_and_nothing_else(records: list[Any], one: Codec, other: Codec) -> None:
    batch = encode_batch(records, base_offset=4, codec=one, producer_id=1, producer_epoch=0, base_sequence=0)
    again = recompress(batch, 0, other)
    assert decode_records(again, check_crc=True) == decode_records(batch)
    assert read_header(again).codec == other
    assert read_header(again)._replace(attributes=0, crc=0, batch_length=0) == read_header(batch)._replace(
        attributes=0, crc=0, batch_length=0
    )


def test_a_fetched_buffer_may_end_within_a_batch() -> None:
    batch = encode_batch([(b"a", b"1", [], 5)])
    for cut in range(len(batch)):
        assert [position for position, _ in each_batch(bytes(batch + batch[:cut]))] == [0]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_first_record_of_a_time_is_found_in_every_codec(codec: Codec) -> None:
    batch = encode_batch([(b"a", b"1", [], 5), (b"b", b"1", [], 9), (b"c", b"1", [], 7)], base_offset=50, codec=codec)
    assert find_timestamp(batch, 6) == (51, 9)
    assert find_timestamp(batch, 9) == (51, 9)
    assert find_timestamp(batch, 10) is None
