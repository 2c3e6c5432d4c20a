"""What a leader and a follower write."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from millstream.log.following import UnexpectedOffset
from millstream.log.log import Origin
from millstream.protocol.errors import (
    CorruptMessage,
    InvalidRecord,
    InvalidTimestamp,
    OutOfOrderSequence,
    RecordListTooLarge,
    RecordTooLarge,
    StorageError,
    UnsupportedCompression,
)
from millstream.records.batch import read_header, stamp_crc
from millstream.records.codecs import Codec
from millstream.records.reading import decode_records
from millstream.runtime.real import RealDisk
from tests.log.making import DAY_MS, NOW_MS, batch, commit, fill, lossy_disk, offsets_of, open_log, records_of

if TYPE_CHECKING:
    from pathlib import Path


def test_batches_get_the_next_offsets_and_the_leaders_epoch() -> None:
    log = open_log(lossy_disk())
    first = log.append_as_leader(batch(3), 4, NOW_MS)
    second = log.append_as_leader(batch(2), 5, NOW_MS)
    assert (first.base_offset, first.last_offset, first.log_append_time) == (0, 2, -1)
    assert (second.base_offset, second.last_offset, second.duplicate) == (3, 4, False)
    fetched = log.read(3, 1 << 20, 5, at_least_one_batch=True)
    assert fetched is not None
    header = read_header(fetched)
    assert (header.base_offset, header.leader_epoch) == (3, 5)
    assert log.epochs.entries == ((4, 0), (5, 3))


def test_nothing_of_the_callers_buffer_is_kept() -> None:
    log = open_log(lossy_disk())
    received = bytearray(batch(3, producer_id=1, producer_epoch=0, base_sequence=0))
    log.append_as_leader(memoryview(received), 0, NOW_MS)
    received[:] = bytes(len(received))
    received.clear()  # fails while anybody holds a view
    assert offsets_of(log) == [0, 1, 2]


def test_a_wrong_crc_is_refused_and_leaves_no_trace() -> None:
    log = open_log(lossy_disk())
    broken = batch()
    broken[-1] ^= 1
    with pytest.raises(CorruptMessage):
        log.append_as_leader(broken, 0, NOW_MS)
    assert log.end_offset == 0
    assert log.active.size == 0


def test_a_client_sends_exactly_one_batch() -> None:
    log = open_log(lossy_disk())
    with pytest.raises(InvalidRecord):
        log.append_as_leader(batch() + batch(), 0, NOW_MS)
    appended = log.append_as_leader(batch(2) + batch(3), 0, NOW_MS, origin=Origin.RAFT_LEADER)
    assert (appended.base_offset, appended.last_offset) == (0, 4)


def test_sizes_are_limited() -> None:
    log = open_log(lossy_disk(), max_message_bytes=500, segment_bytes=300)
    with pytest.raises(RecordTooLarge):
        log.append_as_leader(batch(value=b"x" * 500), 0, NOW_MS)
    with pytest.raises(RecordListTooLarge):
        log.append_as_leader(batch(value=b"x" * 300), 0, NOW_MS)


def test_zstd_needs_a_version_that_knows_it() -> None:
    log = open_log(lossy_disk())
    with pytest.raises(UnsupportedCompression):
        log.append_as_leader(batch(codec=Codec.ZSTD), 0, NOW_MS, version_allows_zstd=False)
    log.append_as_leader(batch(codec=Codec.ZSTD), 0, NOW_MS)


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("stored", ["producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_stored_in_the_topics_codec(codec: Codec, stored: str) -> None:
    log = open_log(lossy_disk(), compression_type=stored)
    log.append_as_leader(batch(5, codec=codec), 3, NOW_MS)
    fetched = log.read(0, 1 << 20, 5, at_least_one_batch=True)
    assert fetched is not None
    expected = {"producer": codec, "uncompressed": Codec.NONE}.get(stored) or Codec.__members__.get(stored.upper(), 0)
    assert read_header(fetched).codec == expected
    assert [record.value for record in decode_records(fetched, check_crc=True)] == [b"v" * 40] * 5


def test_log_append_time_is_stamped_with_a_right_crc() -> None:
    log = open_log(lossy_disk(), log_append_time=True)
    appended = log.append_as_leader(batch(2, timestamp=5), 0, NOW_MS)
    assert appended.log_append_time == NOW_MS
    assert [record.timestamp for record in records_of(log)] == [NOW_MS, NOW_MS]
    found = log.offset_for_timestamp(NOW_MS)
    assert found is not None
    assert found.offset == 0


def test_timestamps_have_bounds() -> None:
    log = open_log(lossy_disk(), message_timestamp_before_max_ms=1_000, message_timestamp_after_max_ms=1_000)
    for timestamp in (NOW_MS - 2_000, NOW_MS + 2_000):
        with pytest.raises(InvalidTimestamp):
            log.append_as_leader(batch(timestamp=timestamp), 0, NOW_MS)


def test_a_producer_that_lies_about_its_newest_timestamp_is_corrected() -> None:
    log = open_log(lossy_disk())
    lying = batch(timestamp=NOW_MS)
    lying[35:43] = (NOW_MS + 99).to_bytes(8, "big")
    stamp_crc(lying, 0, len(lying))
    log.append_as_leader(lying, 0, NOW_MS)
    assert log.active.largest == (NOW_MS, 0)
    assert records_of(log)[0].timestamp == NOW_MS


def test_settings_change_live() -> None:
    log = open_log(lossy_disk())
    log.append_as_leader(batch(value=b"x" * 500), 0, NOW_MS)
    log.reconfigure(replace(log.config, max_message_bytes=100))
    with pytest.raises(RecordTooLarge):
        log.append_as_leader(batch(value=b"x" * 500), 0, NOW_MS)


# Rolling


def test_segments_roll_by_size() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=600)
    fill(log, 20)
    assert len(log.segments) > 5
    assert all(segment.size <= 600 for segment in log.segments)
    assert offsets_of(log) == list(range(60))


def test_segments_roll_by_the_time_of_their_records() -> None:
    log = open_log(lossy_disk(), segment_ms=1_000)
    for timestamp in (0, 1_000, 1_001, 2_001, 2_002):
        log.append_as_leader(batch(timestamp=NOW_MS + timestamp), 0, NOW_MS)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]


def test_segments_of_a_compacted_topic_roll_in_time_to_be_compacted() -> None:
    for compact, rolled in ((True, [0, 1]), (False, [0])):
        log = open_log(lossy_disk(), segment_ms=10_000, max_compaction_lag_ms=1_000, compact=compact)
        for timestamp in (0, 1_001):
            log.append_as_leader(batch(timestamp=NOW_MS + timestamp), 0, NOW_MS)
        assert [segment.base_offset for segment in log.segments] == rolled


def test_segments_roll_when_their_index_is_full() -> None:
    log = open_log(lossy_disk(), segment_index_bytes=48, index_interval_bytes=0, segment_bytes=1 << 20)
    for number in range(20):
        log.append_as_leader(batch(timestamp=NOW_MS + number), 0, NOW_MS)
    assert len(log.segments) > 2
    log.close()
    for segment in log.segments:
        assert log.disk.size(segment.file_path(".index")) <= 48
        assert log.disk.size(segment.file_path(".timeindex")) <= 48


def test_an_idle_log_rolls_into_the_same_empty_segment() -> None:
    """KAFKA-6388: idle, restart, append, where the segment to roll to is there already."""
    disk = lossy_disk()
    log = open_log(disk, segment_ms=1_000)
    fill(log, 1)
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    log.close()
    log = open_log(disk, segment_ms=1_000)
    log.roll(NOW_MS)
    log.append_as_leader(batch(timestamp=NOW_MS + 5_000), 0, NOW_MS + 5_000)
    assert [segment.base_offset for segment in log.segments] == [0, 3]
    assert offsets_of(log) == [0, 1, 2, 3]


@pytest.mark.parametrize("gap", [(1 << 31) - 5, (1 << 31) - 1, 1 << 31, (1 << 31) + 5, 1 << 40])
def test_offsets_too_far_apart_for_an_index_go_to_another_segment(gap: int) -> None:
    """KAFKA-6264: the relative offset of an index entry has four bytes."""
    disk = lossy_disk()
    log = open_log(disk, index_interval_bytes=0)
    fill(log, 2)
    log.append_as_follower(batch(3, base_offset=gap, leader_epoch=0), NOW_MS)
    log.append_as_follower(batch(3, base_offset=gap + 3, leader_epoch=0), NOW_MS)
    expected = [*range(6), *range(gap, gap + 6)]
    assert offsets_of(log) == expected
    for clean in (True, False):
        if clean:
            log.close()
        log = open_log(disk, index_interval_bytes=0, clean=clean)
        assert offsets_of(log) == expected
        assert log.end_offset == gap + 6


# Following


def test_a_follower_keeps_offsets_epochs_and_gaps() -> None:
    leader = open_log(lossy_disk())
    leader.append_as_leader(batch(2), 1, NOW_MS)
    leader.append_as_leader(batch(2), 3, NOW_MS)
    follower = open_log(lossy_disk())
    fetched = leader.read(0, 1 << 20, 4, at_least_one_batch=True)
    assert fetched is not None
    appended = follower.append_as_follower(fetched + fetched[:30], NOW_MS)
    assert appended is not None
    assert (appended.base_offset, appended.last_offset) == (0, 3)
    assert follower.epochs.entries == leader.epochs.entries
    follower.append_as_follower(batch(1, base_offset=10, leader_epoch=3), NOW_MS)
    assert offsets_of(follower) == [0, 1, 2, 3, 10]


def test_a_follower_refuses_what_it_has() -> None:
    follower = open_log(lossy_disk())
    follower.append_as_follower(batch(3, base_offset=0, leader_epoch=0), NOW_MS)
    with pytest.raises(UnexpectedOffset):
        follower.append_as_follower(batch(3, base_offset=2, leader_epoch=0), NOW_MS)
    broken = batch(3, base_offset=3, leader_epoch=0)
    broken[-1] ^= 1
    with pytest.raises(CorruptMessage):
        follower.append_as_follower(broken, NOW_MS)
    assert offsets_of(follower) == [0, 1, 2]


def test_a_follower_starts_inside_the_leaders_batch() -> None:
    """KAFKA-6975: DeleteRecords on the leader stopped inside of a batch, and a new replica begins there."""
    leader = open_log(lossy_disk())
    fill(leader, 3, 10)
    commit(leader)
    leader.advance_start_offset(15)
    follower = open_log(lossy_disk())
    follower.truncate_fully_and_start_at(15, NOW_MS)
    fetched = leader.read(15, 1 << 20, 30, at_least_one_batch=True)
    assert fetched is not None
    follower.append_as_follower(fetched, NOW_MS)
    assert follower.start_offset == 15
    assert offsets_of(follower) == list(range(15, 30))
    assert offsets_of(follower) == offsets_of(leader)


def test_a_follower_does_not_check_sequences() -> None:
    follower = open_log(lossy_disk())
    fields = {"producer_id": 5, "producer_epoch": 1}
    follower.append_as_follower(batch(2, base_offset=0, base_sequence=10, **fields), NOW_MS)
    follower.append_as_follower(batch(2, base_offset=2, base_sequence=40, **fields), NOW_MS)
    with pytest.raises(OutOfOrderSequence):
        follower.append_as_leader(batch(2, base_sequence=50, **fields), 0, NOW_MS)
    assert follower.append_as_leader(batch(2, base_sequence=42, **fields), 0, NOW_MS).base_offset == 4


def test_a_follower_takes_thousands_of_batches_at_once(tmp_path: Path) -> None:
    """More than one writev takes pieces."""
    follower = open_log(RealDisk(), f"{tmp_path}/topic-0", segment_bytes=100_000)
    fetched = b"".join(batch(1, base_offset=offset, leader_epoch=0, value=b"") for offset in range(5_000))
    follower.append_as_follower(fetched, NOW_MS)
    assert offsets_of(follower) == list(range(5_000))
    assert len(follower.segments) > 2


def test_a_closed_log_takes_nothing() -> None:
    log = open_log(lossy_disk())
    fill(log, 1)
    log.close()
    with pytest.raises(StorageError):
        fill(log, 1)
    with pytest.raises(StorageError):
        log.append_as_follower(batch(1, base_offset=3), NOW_MS)


def test_age_alone_rolls_nothing() -> None:
    log = open_log(lossy_disk(), segment_ms=1_000)
    fill(log, 1)
    log.append_as_leader(batch(timestamp=NOW_MS), 0, NOW_MS + 30 * DAY_MS)
    assert len(log.segments) == 1
