"""Offsets by time, against looking at every record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.records.batch import HEADER_BYTES, stamp_crc
from millstream.records.building import encode_batch
from tests.log.making import NOW_MS, batch, commit, fill, lossy_disk, open_log


@given(
    batches=st.lists(
        st.tuples(
            st.lists(st.integers(0, 30), min_size=1, max_size=6), st.sampled_from([0, 1, 2, 3, 4]), st.booleans()
        ),
        min_size=1,
        max_size=20,
    ),
    target=st.integers(-2, 32),
    start=st.integers(0, 10),
    interval=st.sampled_from([0, 100, 5_000]),
)
def test_out_of_order_timestamps_are_found_as_by_brute_force(
    batches: list[tuple[list[int], int, bool]], target: int, start: int, interval: int
) -> None:
    """KAFKA-16310: the first record with the largest timestamp, and the first that is not older than a given one."""
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=400, index_interval_bytes=interval)
    records: list[tuple[int, int]] = []
    for timestamps, codec, rolls in batches:
        made = encode_batch([(b"k", b"v" * 20, (), NOW_MS + each) for each in timestamps], codec=codec)
        log.append_as_leader(made, 5, NOW_MS)
        records += [(len(records) + number, NOW_MS + each) for number, each in enumerate(timestamps)]
        if rolls:
            log.roll(NOW_MS)
    commit(log)
    start = min(start, len(records) - 1)
    log.advance_start_offset(start)
    for restart in (None, True, False):
        if restart:
            log.close()
        if restart is not None:
            log = open_log(
                disk, segment_bytes=400, index_interval_bytes=interval, clean=restart, log_start_offset=start
            )
        found = log.offset_for_timestamp(NOW_MS + target)
        newer = [(offset, timestamp, 5) for offset, timestamp in records[start:] if timestamp >= NOW_MS + target]
        assert found == (newer[0] if newer else None)
        newest = log.offset_of_max_timestamp()
        largest = max(timestamp for _, timestamp in records)
        if newest is not None:
            assert newest == next((*each, 5) for each in records[start:] if each[1] == largest)


def test_earliest_and_latest_come_with_their_epochs() -> None:
    log = open_log(lossy_disk())
    fill(log, 2, epoch=1)
    fill(log, 2, epoch=4)
    commit(log)
    assert log.earliest() == (0, -1, 1)
    assert log.latest(log.high_watermark) == (12, -1, 4)
    log.advance_start_offset(7)
    assert log.earliest() == (7, -1, 4)


def test_an_empty_log_has_no_timestamps() -> None:
    log = open_log(lossy_disk())
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


def test_records_without_timestamps_are_never_found_by_one() -> None:
    log = open_log(lossy_disk())
    log.append_as_leader(batch(timestamp=-1), 0, NOW_MS)
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


def test_log_append_time_is_what_counts_where_it_is_set() -> None:
    log = open_log(lossy_disk(), log_append_time=True)
    log.append_as_leader(batch(3, timestamp=5), 0, NOW_MS)
    log.append_as_leader(batch(3, timestamp=NOW_MS + 99), 0, NOW_MS + 1)
    assert log.offset_for_timestamp(NOW_MS + 1) == (3, NOW_MS + 1, 0)
    assert log.offset_for_timestamp(6) == (0, NOW_MS, 0)
    assert log.offset_of_max_timestamp() == (3, NOW_MS + 1, 0)


def test_a_batch_that_lies_inside_is_told_by_its_header() -> None:
    """With validation by header only, what is inside may be garbage; looking for a time must survive it."""
    log = open_log(lossy_disk(), validate_records=False)
    fill(log, 1, timestamp=NOW_MS - 50)
    lying = batch(3)
    lying[HEADER_BYTES:] = b"\xff" * (len(lying) - HEADER_BYTES)
    stamp_crc(lying, 0, len(lying))
    log.append_as_leader(lying, 0, NOW_MS)
    fill(log, 1, timestamp=NOW_MS + 50)
    assert log.offset_for_timestamp(NOW_MS) == (3, NOW_MS, 0)
    assert log.offset_for_timestamp(NOW_MS + 1) == (6, NOW_MS + 50, 0)


def test_few_files_stay_open_however_many_segments_are_read() -> None:
    log = open_log(lossy_disk(), segment_bytes=300)
    fill(log, 50)
    assert len(log.segments) > 40
    assert sum(segment._file is not None for segment in log.segments) <= 6
    for offset in range(150):
        log.read(offset, 1, 150, at_least_one_batch=True)
        log.offset_for_timestamp(NOW_MS)
    assert sum(segment._file is not None for segment in log.segments) <= 6
