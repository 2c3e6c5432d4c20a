"""A disk that fails or is full takes the log offline: nothing more is acknowledged, what is intact stays readable."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest

from millstream.log.log import Origin
from millstream.protocol.errors import StorageError
from millstream.records.building import end_transaction_marker
from tests.log.making import NOW_MS, batch, fill, lossy_disk, offsets_of, open_log

if TYPE_CHECKING:
    from millstream.testing.disk import LossyDisk


def fail_next(disk: LossyDisk, number: int = errno.EIO) -> None:
    disk.fail_at = {disk.steps + 1: number}


def test_appends_are_refused_after_a_failed_write() -> None:
    """KAFKA-10778: the batch behind a torn one would make it look like data."""
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 4)
    fail_next(disk)
    for _ in range(2):
        with pytest.raises(StorageError):
            fill(log, 1)
    assert log.is_offline
    assert log.end_offset == 12
    assert offsets_of(log) == list(range(12))


def test_a_torn_batch_is_cut_off_at_the_next_start() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 4)
    size = disk.size(log.active.path)
    fail_next(disk)
    with pytest.raises(StorageError):
        fill(log, 1)
    assert disk.size(log.active.path) > size
    log.close()
    log = open_log(disk, clean=False)
    assert offsets_of(log) == list(range(12))
    assert disk.size(log.active.path) == size
    fill(log, 1)
    assert offsets_of(log) == list(range(15))


def test_a_full_disk_loses_nothing_and_recovers_with_space() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 2)
    disk.set_capacity(2_000)
    with pytest.raises(StorageError):
        fill(log, 100)
    acknowledged = log.end_offset
    disk.set_capacity(1 << 30)
    with pytest.raises(StorageError):
        fill(log, 1)
    log = open_log(disk, clean=False)
    assert offsets_of(log) == list(range(acknowledged))


@pytest.mark.parametrize("batches", [1, 3])
def test_what_did_not_fit_can_be_taken_back(batches: int) -> None:
    """The metadata log does that: it refuses one change and goes on."""
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 2)
    before = log.end_offset
    content = disk.read_file(log.active.path)
    disk.set_capacity(disk.space("/logs")[0] - disk.space("/logs")[1] + batches * 200)
    with pytest.raises(StorageError):
        fill(log, 100)
    assert log.take_back_what_did_not_fit(before, NOW_MS)
    assert disk.read_file(log.active.path) == content
    assert offsets_of(log) == list(range(before))
    disk.set_capacity(1 << 30)
    fill(log, 1)
    assert offsets_of(log) == list(range(before + 3))


def test_after_another_failure_nothing_is_taken_back() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 2)
    assert not log.take_back_what_did_not_fit(log.end_offset, NOW_MS)
    fail_next(disk)
    with pytest.raises(StorageError):
        fill(log, 1)
    assert not log.take_back_what_did_not_fit(log.end_offset, NOW_MS)
    assert log.is_offline


def test_an_error_at_any_step_is_never_acknowledged() -> None:
    """Whatever fails, roll, snapshot, index or epoch file: the log is offline, and comes back with what it promised."""
    for step in range(3, 500):
        disk = lossy_disk()
        log = open_log(disk, segment_bytes=600)
        disk.fail_at = {disk.steps + step - 2: errno.EIO}
        acknowledged = 0
        try:
            for epoch in range(12):
                log.append_as_leader(batch(2), epoch // 3, NOW_MS)
                acknowledged = log.end_offset
            log.close()
        except StorageError:
            assert log.is_offline
        failed = disk.steps >= next(iter(disk.fail_at))
        disk.fail_at = {}
        log = open_log(disk, segment_bytes=600, clean=False)
        assert offsets_of(log)[:acknowledged] == list(range(acknowledged))
        if not failed:
            return
    raise AssertionError("there was always one more step to fail")


def test_a_failed_append_leaves_the_producer_where_it_was() -> None:
    """KAFKA-6683: the retry after the restart is not a duplicate."""
    disk = lossy_disk()
    log = open_log(disk)
    fields = {"producer_id": 7, "producer_epoch": 0}
    log.append_as_leader(batch(2, base_sequence=0, **fields), 0, NOW_MS)
    fail_next(disk)
    with pytest.raises(StorageError):
        log.append_as_leader(batch(2, base_sequence=2, **fields), 0, NOW_MS)
    producer = log.producers.get(7)
    assert producer is not None
    assert producer.last_sequence == 1
    log = open_log(disk, clean=False)
    appended = log.append_as_leader(batch(2, base_sequence=2, **fields), 0, NOW_MS)
    assert (appended.base_offset, appended.duplicate) == (2, False)


def test_a_failing_transaction_index_makes_no_second_batch_at_an_offset() -> None:
    """KAFKA-7866: the marker is in the log when its index entry fails."""
    disk = lossy_disk()
    log = open_log(disk)
    log.append_as_leader(batch(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True), 0, NOW_MS)
    marker = end_transaction_marker(
        commit=False, producer_id=7, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
    )
    disk.fail_at = {disk.steps + 2: errno.EIO}
    with pytest.raises(StorageError):
        log.append_as_leader(marker, 0, NOW_MS, origin=Origin.COORDINATOR)
    assert log.end_offset == 2
    with pytest.raises(StorageError):
        fill(log, 1)
    log = open_log(disk, clean=False)
    assert offsets_of(log) == [0, 1]
    assert log.aborted_transactions(0, 2) == [(7, 0)]


def test_a_failed_sync_takes_the_log_offline() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 1)
    fail_next(disk)
    with pytest.raises(StorageError):
        log.flush()
    assert log.recovery_point == 0
    with pytest.raises(StorageError):
        fill(log, 1)
