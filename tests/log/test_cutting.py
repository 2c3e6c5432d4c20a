"""Truncation, DeleteRecords, retention and deletion."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import OffsetOutOfRange, StorageError
from tests.log.making import DAY_MS, FOLDER, NOW_MS, batch, commit, files_of, fill, lossy_disk, offsets_of, open_log


@pytest.mark.parametrize("target", range(61))
def test_truncation_keeps_whole_batches_below_the_offset(target: int) -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=600)
    fill(log, 20)
    log.truncate_to(target, NOW_MS)
    left = list(range(target - target % 3))
    assert offsets_of(log) == left
    fill(log, 2)
    assert offsets_of(log) == list(range(len(left) + 6))
    for clean in (True, False):
        if clean:
            log.close()
        log = open_log(disk, segment_bytes=600, clean=clean)
        assert offsets_of(log) == list(range(len(left) + 6))


def test_truncation_takes_marks_with_it() -> None:
    log = open_log(lossy_disk(), segment_bytes=600)
    fill(log, 20)
    commit(log)
    log.flush()
    log.truncate_to(30, NOW_MS)
    assert (log.high_watermark, log.recovery_point, log.end_offset) == (30, 30, 30)


def test_a_sync_that_was_under_way_does_not_speak_for_later_records() -> None:
    log = open_log(lossy_disk())
    fill(log, 10)
    end_offset = log.end_offset
    targets = log.sync_targets()
    log.truncate_to(9, NOW_MS)
    fill(log, 10)
    for target in targets:
        target.sync()
    log.synced(end_offset)
    assert log.recovery_point == 9


def test_truncated_segments_do_not_come_back_with_the_power() -> None:
    for seed in range(10):
        disk = lossy_disk(seed)
        log = open_log(disk, segment_bytes=600)
        fill(log, 20)
        log.flush()
        log.truncate_to(20, NOW_MS)
        disk.crash()
        log = open_log(disk, segment_bytes=600, clean=False, recovery_point=18)
        assert offsets_of(log) == list(range(log.end_offset))


def test_a_log_can_begin_anew_anywhere() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=600)
    fill(log, 20, epoch=3)
    log.truncate_fully_and_start_at(1_000, NOW_MS)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (1_000, 1_000, 1_000)
    assert log.epochs.entries == ()
    fill(log, 2)
    log.close()
    log = open_log(disk, segment_bytes=600, log_start_offset=1_000)
    assert offsets_of(log) == list(range(1_000, 1_006))


def test_truncation_below_the_first_segment_begins_anew() -> None:
    log = open_log(lossy_disk(), log_start_offset=100)
    fill(log, 3)
    log.truncate_to(50, NOW_MS)
    assert (log.start_offset, log.end_offset) == (50, 50)


# DeleteRecords


def test_deleted_records_are_out_of_reach_at_once_and_go_with_their_segment() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=600)
    fill(log, 20)
    commit(log)
    assert log.advance_start_offset(25)
    assert offsets_of(log) == list(range(25, 60))
    with pytest.raises(OffsetOutOfRange):
        log.read(24, 100, 60, at_least_one_batch=True)
    before = len(log.segments)
    assert log.enforce_retention(NOW_MS) > 0
    assert len(log.segments) < before
    assert log.segments[0].base_offset <= 25 < log.segments[1].base_offset
    assert offsets_of(log) == list(range(25, 60))


def test_records_above_the_high_watermark_cannot_be_deleted() -> None:
    log = open_log(lossy_disk())
    fill(log, 2)
    with pytest.raises(OffsetOutOfRange):
        log.advance_start_offset(1)
    commit(log)
    assert log.advance_start_offset(6)
    assert not log.advance_start_offset(2)
    assert log.start_offset == 6


def test_a_start_inside_of_a_batch_survives_a_restart() -> None:
    """KAFKA-6975"""
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 2, 10)
    commit(log)
    log.advance_start_offset(4)
    log.close()
    log = open_log(disk, log_start_offset=4)
    assert offsets_of(log) == list(range(4, 20))
    fetched = log.read(4, 1, 20, at_least_one_batch=True)
    assert fetched is not None
    assert fetched[:8] == bytes(8), "the whole batch comes; the client skips what is before its offset"


# Retention


def test_old_segments_go_whole_and_oldest_first() -> None:
    log = open_log(lossy_disk(), segment_bytes=600, retention_ms=DAY_MS)
    for day in range(10):
        fill(log, 3, timestamp=NOW_MS + day * DAY_MS)
    commit(log)
    log.enforce_retention(NOW_MS + 10 * DAY_MS)
    assert log.start_offset == log.segments[0].base_offset > 0
    assert log.segments[0].largest[0] >= NOW_MS + 9 * DAY_MS
    assert offsets_of(log) == list(range(log.start_offset, 90))


def test_an_aged_active_segment_goes_too() -> None:
    log = open_log(lossy_disk(), retention_ms=DAY_MS)
    fill(log, 3)
    commit(log)
    assert log.enforce_retention(NOW_MS + DAY_MS) == 0
    assert log.enforce_retention(NOW_MS + DAY_MS + 1) == 1
    assert (log.start_offset, log.end_offset) == (9, 9)
    assert log.append_as_leader(batch(), 0, NOW_MS).base_offset == 9
    assert log.enforce_retention(NOW_MS) == 0


def test_size_limits_the_log() -> None:
    log = open_log(lossy_disk(), segment_bytes=600, retention_bytes=2_000, retention_ms=-1)
    fill(log, 40)
    commit(log)
    log.enforce_retention(NOW_MS)
    assert 2_000 <= log.size_bytes < 2_600


def test_minus_one_keeps_for_ever() -> None:
    log = open_log(lossy_disk(), segment_bytes=600, retention_bytes=-1, retention_ms=-1)
    fill(log, 40)
    commit(log)
    assert log.enforce_retention(NOW_MS + 10_000 * DAY_MS) == 0


def test_nothing_above_the_high_watermark_goes() -> None:
    log = open_log(lossy_disk(), segment_bytes=600, retention_ms=0)
    fill(log, 40)
    log.advance_high_watermark(30)
    log.enforce_retention(NOW_MS + DAY_MS)
    assert log.start_offset <= 30
    assert offsets_of(log) == list(range(log.start_offset, 120))


def test_a_compacted_log_is_not_deleted_by_time() -> None:
    log = open_log(lossy_disk(), segment_bytes=600, retention_ms=0, delete=False, compact=True)
    fill(log, 40)
    commit(log)
    assert log.enforce_retention(NOW_MS + DAY_MS) == 0


def test_records_without_a_timestamp_age_with_their_file() -> None:
    disk = lossy_disk()
    disk.clock_ms = NOW_MS
    log = open_log(disk, retention_ms=DAY_MS)
    fill(log, 1, timestamp=-1)
    commit(log)
    assert log.enforce_retention(NOW_MS + DAY_MS) == 0
    assert log.enforce_retention(NOW_MS + DAY_MS + 1) == 1


def test_files_are_renamed_first_and_removed_later() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=600, retention_ms=0)
    fill(log, 10)
    commit(log)
    log.enforce_retention(NOW_MS + 10)
    assert files_of(disk, ".deleted")
    assert log.remove_due(NOW_MS + 1_009) == NOW_MS + 1_010
    assert files_of(disk, ".deleted")
    assert log.remove_due(NOW_MS + 1_010) is None
    assert files_of(disk, ".deleted") == []


# Deletion


def test_a_deleted_partition_leaves_under_another_name() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 3)
    renamed = log.delete("0123456789abcdef0123456789abcdef")
    assert renamed == "/logs/topic-0.0123456789abcdef0123456789abcdef-delete"
    assert not disk.exists(FOLDER)
    with pytest.raises(StorageError):
        fill(log, 1)
    with pytest.raises(StorageError):
        log.read(0, 100, 9, at_least_one_batch=True)


def test_deleting_a_topic_while_retention_runs_harms_nobody() -> None:
    """KAFKA-13403"""
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=600, retention_ms=0)
    fill(log, 10)
    commit(log)
    log.enforce_retention(NOW_MS + 10)
    log.delete("0" * 32)
    assert log.enforce_retention(NOW_MS + 20) == 0
    assert log.remove_due(NOW_MS + 10_000) is None
    log.close()
    assert open_log(disk).end_offset == 0
