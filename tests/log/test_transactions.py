"""Transactions as a log sees them: the last stable offset, markers, and the index of what was aborted."""

from __future__ import annotations

import pytest

from millstream.log.log import Log, Origin
from millstream.log.producers import CoordinatorFenced, InvalidTransactionState
from millstream.protocol.errors import InvalidProducerEpoch
from millstream.records.building import end_transaction_marker
from tests.log.making import FOLDER, NOW_MS, batch, commit, fill, lossy_disk, open_log


def write(log: Log, producer_id: int, sequence: int, count: int = 1, epoch: int = 0) -> None:
    made = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=True)
    log.append_as_leader(made, 0, NOW_MS)
    commit(log)


def end(log: Log, producer_id: int, *, abort: bool = False, epoch: int = 0, coordinator_epoch: int = 0) -> None:
    marker = end_transaction_marker(
        commit=not abort,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=NOW_MS,
    )
    log.append_as_leader(marker, 0, NOW_MS, origin=Origin.COORDINATOR)


def test_readers_of_committed_records_wait_for_the_oldest_open_transaction() -> None:
    log = open_log(lossy_disk())
    fill(log, 1)
    write(log, 1, 0)
    write(log, 2, 0)
    assert log.last_stable_offset == 3
    end(log, 1)
    commit(log)
    assert log.last_stable_offset == 4
    end(log, 2)
    assert log.last_stable_offset == 4, "the marker is not committed yet"
    commit(log)
    assert log.last_stable_offset == log.end_offset == 7


def test_the_stable_offset_never_passes_the_high_watermark() -> None:
    log = open_log(lossy_disk())
    write(log, 1, 0)
    fill(log, 1)
    assert log.last_stable_offset == 0
    log.high_watermark = 0
    assert log.last_stable_offset == 0


@pytest.mark.parametrize("restart", [None, "clean", "kill"])
def test_aborted_transactions_are_listed_in_offset_order(restart: str | None) -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=400)
    write(log, 1, 0, 2)  # 0-1
    write(log, 2, 0, 2)  # 2-3
    write(log, 3, 0, 2)  # 4-5
    end(log, 2, abort=True)  # 6
    end(log, 3)  # 7
    write(log, 2, 2, 2)  # 8-9
    end(log, 1, abort=True)  # 10
    fill(log, 3)  # 11-19
    end(log, 2, abort=True)  # 20
    commit(log)
    assert len(log.segments) > 2
    if restart == "clean":
        log.close()
    if restart:
        log = open_log(disk, segment_bytes=400, clean=restart == "clean")
        commit(log)
    assert log.aborted_transactions(0, 21) == [(1, 0), (2, 2), (2, 8)]
    assert log.aborted_transactions(0, 5) == [(1, 0), (2, 2)]
    assert log.aborted_transactions(7, 21) == [(1, 0), (2, 8)]
    assert log.aborted_transactions(11, 21) == [(2, 8)]
    assert log.aborted_transactions(21, 21) == []
    assert log.last_stable_offset == 21


def test_an_open_transaction_is_still_open_after_any_restart() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=300)
    fill(log, 3)
    write(log, 1, 0)
    fill(log, 3)
    for clean in (True, False):
        if clean:
            log.close()
        log = open_log(disk, segment_bytes=300, clean=clean)
        commit(log)
        assert log.last_stable_offset == 9


def test_truncation_forgets_markers_and_reopens_transactions() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    write(log, 1, 0)
    end(log, 1, abort=True)
    commit(log)
    log.truncate_to(1, NOW_MS)
    assert log.last_stable_offset == 0
    assert log.aborted_transactions(0, 1) == []
    assert not disk.exists(f"{FOLDER}/00000000000000000000.txnindex")
    end(log, 1)
    commit(log)
    assert log.aborted_transactions(0, 2) == []
    assert log.last_stable_offset == 2


def test_writes_outside_of_an_open_transaction_are_refused() -> None:
    log = open_log(lossy_disk())
    write(log, 1, 0)
    with pytest.raises(InvalidTransactionState):
        log.append_as_leader(batch(producer_id=1, producer_epoch=0, base_sequence=1), 0, NOW_MS)


def test_markers_are_fenced_by_producer_and_coordinator() -> None:
    log = open_log(lossy_disk())
    write(log, 1, 0, epoch=5)
    with pytest.raises(InvalidProducerEpoch):
        end(log, 1, epoch=4)
    end(log, 1, epoch=6, coordinator_epoch=3)
    with pytest.raises(CoordinatorFenced):
        end(log, 1, epoch=6, coordinator_epoch=2)
    with pytest.raises(InvalidProducerEpoch):
        write(log, 1, 1, epoch=5)
    write(log, 1, 0, epoch=6)


def test_a_marker_of_an_empty_transaction_leaves_no_trace_in_the_index() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    end(log, 1, abort=True)
    commit(log)
    assert log.last_stable_offset == 1
    assert not disk.exists(f"{FOLDER}/00000000000000000000.txnindex")


def test_a_last_segment_that_has_to_be_scanned_knows_what_began_before_it() -> None:
    """A clean stop, and then somebody removed an index."""
    disk = lossy_disk()
    log = open_log(disk)
    write(log, 1, 0)
    log.roll(NOW_MS)
    end(log, 1, abort=True)
    log.close()
    disk.remove(f"{FOLDER}/00000000000000000001.index")
    log = open_log(disk)
    commit(log)
    assert log.aborted_transactions(0, 2) == [(1, 0)]
    assert log.last_stable_offset == 2


def test_a_marker_that_makes_no_sense_ends_nothing_and_breaks_nothing() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    write(log, 1, 0)
    nonsense = batch(producer_id=1, producer_epoch=0, base_offset=1, transactional=True, control=True)
    log.append_as_follower(nonsense, NOW_MS)
    for clean in (True, False):
        if clean:
            log.close()
        log = open_log(disk, clean=clean)
        commit(log)
        assert (log.end_offset, log.last_stable_offset) == (2, 0)


def test_with_transaction_version_2_a_late_marker_does_not_end_the_next_transaction() -> None:
    """KIP-1228: an end bumps the epoch, so a marker with the epoch of what is open belongs to the one before."""
    log = open_log(lossy_disk())
    write(log, 1, 0, epoch=5)
    log.producers.check_marker(1, 6, 0, transaction_version=2)
    end(log, 1, epoch=6)
    log.producers.check_marker(1, 6, 0, transaction_version=2)  # a repetition: nothing is open
    write(log, 1, 0, epoch=6)
    with pytest.raises(InvalidProducerEpoch):
        log.producers.check_marker(1, 6, 0, transaction_version=2)
    log.producers.check_marker(1, 6, 0, transaction_version=1)
    log.producers.check_marker(1, 7, 0, transaction_version=2)


def test_the_highest_epoch_may_end_its_own_transaction() -> None:
    log = open_log(lossy_disk())
    write(log, 1, 0, epoch=32767)
    log.producers.check_marker(1, 32767, 0, transaction_version=2)


def test_a_marker_can_be_told_from_the_one_before() -> None:
    """KIP-890: whoever asked the coordinator must see that the transaction ended while the answer was on its way."""
    log = open_log(lossy_disk())
    assert log.producers.last_marker_of(1) == -1
    for _ in range(2):
        before = log.producers.last_marker_of(1), log.producers.last_marker_of(2)
        end(log, 1)
        assert log.producers.last_marker_of(1) == log.end_offset - 1 > before[0]
        assert log.producers.last_marker_of(2) == before[1]


@pytest.mark.parametrize("restart", [None, "clean", "kill"])
def test_a_producer_that_was_long_silent_in_a_transaction_keeps_its_coordinators_epoch(restart: str | None) -> None:
    """Bug 33, KAFKA-9144: it must not expire by the age of its records right after the marker."""
    disk = lossy_disk()
    expiration_ms = 1_000
    log = open_log(disk, producer_id_expiration_ms=expiration_ms)
    write(log, 1, 0)
    later_ms = NOW_MS + 10 * expiration_ms
    assert log.expire_producers(later_ms) == 0, "its transaction is open"
    marker = end_transaction_marker(
        commit=False, producer_id=1, producer_epoch=1, coordinator_epoch=7, timestamp=later_ms
    )
    log.append_as_leader(marker, 0, later_ms, origin=Origin.COORDINATOR)
    assert log.expire_producers(later_ms) == 0
    if restart is not None:
        if restart == "clean":
            log.close()
        log = open_log(disk, producer_id_expiration_ms=expiration_ms, clean=restart == "clean", now_ms=later_ms)
    with pytest.raises(CoordinatorFenced):
        end(log, 1, epoch=1, coordinator_epoch=6)
    assert log.expire_producers(later_ms + expiration_ms) == 1
