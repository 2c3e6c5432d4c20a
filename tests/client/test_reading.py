"""What a reader makes of fetched batches of which one is damaged."""

from __future__ import annotations

import pytest

from millstream.client.errors import CorruptBatch
from millstream.client.fetch import Fetched
from millstream.client.reading import batches_from, corrupt
from millstream.records.batch import (
    BASE_OFFSET_AT,
    COUNT_AT,
    HEADER_BYTES,
    LAST_OFFSET_DELTA_AT,
    LENGTH_AT,
    MAGIC_AT,
    read_header,
)
from millstream.records.building import assemble, encode_batch

END = 106


def batch(offset: int) -> bytearray:
    return bytearray(encode_batch([(None, b"v", (), 5)] * 2, base_offset=offset))


def fetched(*batches: bytearray) -> Fetched:
    return Fetched("t", 3, memoryview(b"".join(batches)), END, END, 0, ())


def flipped(offset: int, at: int, bit: int = 1) -> bytearray:
    damaged = batch(offset)
    damaged[at] ^= bit
    return damaged


def after(*batches: bytearray) -> int | None:
    """Where to read on behind the first of these."""
    answer = fetched(*batches)
    return corrupt(answer, 0, read_header(answer.batches), "the CRC of the batch is wrong").next_offset


@pytest.mark.parametrize("damaged", [MAGIC_AT, LENGTH_AT])
def test_damage_behind_good_batches_is_named_after_they_were_read(damaged: int) -> None:
    # A negative length: one that is only too large is that of a batch which the fetch has cut.
    found = batches_from(fetched(batch(100), flipped(102, damaged, 0x80), batch(104)), 101)
    assert [record.offset for record in next(found).records] == [101]
    with pytest.raises(CorruptBatch, match="topic 't' partition 3 offset 102: a batch of") as caught:
        next(found)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 3, 102)
    assert caught.value.next_offset is None


def test_the_next_batch_says_where_to_read_on() -> None:
    assert after(flipped(100, -1), batch(102)) == 102
    assert after(flipped(100, LAST_OFFSET_DELTA_AT), batch(102)) == 102
    assert after(flipped(100, LAST_OFFSET_DELTA_AT), batch(103)) == 103


def test_a_last_batch_is_believed_where_its_counts_agree() -> None:
    assert after(flipped(100, -1)) == 102
    assert after(flipped(104, -1)) == END


@pytest.mark.parametrize("at", [LAST_OFFSET_DELTA_AT, LAST_OFFSET_DELTA_AT + 3, COUNT_AT, COUNT_AT + 3])
def test_a_header_that_is_damaged_itself_does_not_lead_past_good_records(at: int) -> None:
    assert after(flipped(100, at, 4)) is None


def test_no_offset_beyond_the_end_of_the_partition_is_believed() -> None:
    assert after(flipped(106, -1)) is None
    # The batch behind says that it begins above 2^56.
    assert after(flipped(100, LAST_OFFSET_DELTA_AT), flipped(102, BASE_OFFSET_AT)) is None


def test_a_header_under_a_right_crc_is_believed_after_a_compaction_too() -> None:
    whole = batch(100)
    compacted = assemble(read_header(whole)._replace(count=3, last_offset_delta=4), whole[HEADER_BYTES:])
    assert after(bytearray(compacted)) == 105
