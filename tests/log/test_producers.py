"""Idempotence: what a producer may send next, what is a duplicate, and what survives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.log import snapshots
from millstream.log.snapshots import CorruptSnapshot, SnapshotEntry
from millstream.protocol.errors import InvalidProducerEpoch, OutOfOrderSequence
from tests.log.making import DAY_MS, FOLDER, NOW_MS, batch, commit, files_of, fill, lossy_disk, open_log

if TYPE_CHECKING:
    from millstream.log.log import Appended, Log


def send(log: Log, sequence: int, count: int = 1, *, epoch: int = 0, producer_id: int = 7, **fields: Any) -> Appended:
    made = batch(count, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields)
    return log.append_as_leader(made, 0, NOW_MS)


def test_the_last_five_batches_are_known_and_answered_with_their_offsets() -> None:
    log = open_log(lossy_disk())
    for number in range(7):
        assert send(log, number * 2, 2).base_offset == number * 2
    for number in range(2, 7):
        again = send(log, number * 2, 2)
        assert (again.base_offset, again.last_offset, again.duplicate) == (number * 2, number * 2 + 1, True)
    with pytest.raises(OutOfOrderSequence):
        send(log, 2, 2)
    assert log.end_offset == 14


@pytest.mark.parametrize("sequence", [0, 2, 6, 100])
def test_only_the_next_sequence_is_accepted(sequence: int) -> None:
    log = open_log(lossy_disk())
    send(log, 0, 5)
    with pytest.raises(OutOfOrderSequence):
        send(log, sequence, 3)
    send(log, 5)


def test_a_batch_of_another_size_at_a_known_sequence_is_no_duplicate() -> None:
    log = open_log(lossy_disk())
    send(log, 0, 5)
    with pytest.raises(OutOfOrderSequence):
        send(log, 0, 4)


def test_sequences_wrap() -> None:
    """KAFKA-7692: after 2^31 - 1 comes 0, also within a batch."""
    log = open_log(lossy_disk())
    send(log, 2**31 - 2, 1)
    assert send(log, 2**31 - 1, 3).base_offset == 1
    assert send(log, 2, 1).base_offset == 4
    again = send(log, 2**31 - 1, 3)
    assert (again.base_offset, again.duplicate) == (1, True)


def test_sequences_wrap_over_a_restart() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    send(log, 2**31 - 2, 4)
    for clean in (True, False):
        if clean:
            log.close()
        log = open_log(disk, clean=clean)
        assert send(log, 2**31 - 2, 4).duplicate
    send(log, 2, 1)


def test_an_unknown_producer_may_begin_anywhere() -> None:
    """Retention may have taken all that is known of it."""
    log = open_log(lossy_disk())
    assert send(log, 42).base_offset == 0


def test_epochs_fence() -> None:
    log = open_log(lossy_disk())
    send(log, 0, epoch=3)
    with pytest.raises(InvalidProducerEpoch):
        send(log, 1, epoch=2)
    with pytest.raises(OutOfOrderSequence):
        send(log, 1, epoch=4)
    assert not send(log, 0, epoch=4).duplicate
    assert log.end_offset == 2


def test_silent_producers_are_forgotten() -> None:
    log = open_log(lossy_disk())
    send(log, 0)
    assert log.expire_producers(NOW_MS + DAY_MS - 1) == 0
    assert log.expire_producers(NOW_MS + DAY_MS) == 1
    assert send(log, 9).base_offset == 1


def test_an_open_transaction_keeps_its_producer() -> None:
    log = open_log(lossy_disk())
    send(log, 0, transactional=True)
    assert log.expire_producers(NOW_MS + 30 * DAY_MS) == 0


def test_a_clean_restart_knows_the_newest_batch() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    send(log, 0, 2)
    send(log, 2, 2)
    log.close()
    assert files_of(disk, ".snapshot") == ["00000000000000000004.snapshot"]
    log = open_log(disk)
    assert send(log, 2, 2).duplicate
    send(log, 4)


def test_a_kill_loses_no_producer_wherever_its_batches_are() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=500)
    for number in range(20):
        send(log, number // 3, producer_id=number % 3)
        fill(log, 1)
    assert len(log.segments) > 3
    expected = {producer.producer_id: producer.last_sequence for producer in log.producers.all()}
    for recovery_point in (0, 30, log.end_offset, 10_000):
        reopened = open_log(disk, segment_bytes=500, clean=False, recovery_point=recovery_point)
        assert {producer.producer_id: producer.last_sequence for producer in reopened.producers.all()} == expected


def test_a_broken_snapshot_is_replaced_by_an_older_one() -> None:
    """Cut at every byte, and with every byte flipped."""
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=300)
    for number in range(10):
        send(log, number)
    log.close()
    path = f"{FOLDER}/{files_of(disk, '.snapshot')[-1]}"
    whole = disk.read_file(path)
    broken = [whole[:size] for size in range(len(whole))]
    broken += [whole[:at] + bytes([whole[at] ^ 0x10]) + whole[at + 1 :] for at in range(len(whole))]
    for content in broken:
        disk.replace_file(path, content)
        log = open_log(disk, segment_bytes=300)
        producer = log.producers.get(7)
        assert producer is not None
        assert (producer.last_sequence, producer.last_offset) == (9, 9)


def test_truncation_forgets_what_it_cut_off() -> None:
    log = open_log(lossy_disk(), segment_bytes=300)
    for number in range(10):
        send(log, number)
    log.truncate_to(6, NOW_MS)
    assert send(log, 5).duplicate
    assert send(log, 6).base_offset == 6


def test_retention_keeps_what_is_known_of_producers() -> None:
    """KAFKA-8335's kin: the records are gone, the producer's sequence is not."""
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=300, retention_ms=1_000)
    send(log, 0, 3, timestamp=NOW_MS)
    fill(log, 5)
    commit(log)
    log.enforce_retention(NOW_MS + 5_000)
    assert log.start_offset == log.end_offset
    for clean in (True, False):
        if clean:
            log.close()
        log = open_log(disk, segment_bytes=300, clean=clean)
        assert send(log, 0, 3).duplicate


def test_snapshots_have_kafkas_bytes() -> None:
    entry = SnapshotEntry(1, 2, 3, 4, 5, 6, 7, -1)
    content = snapshots.encode([entry])
    assert content[:2] == b"\x00\x01"
    assert content[6:10] == b"\x00\x00\x00\x01"
    assert len(content) == 10 + 46
    assert snapshots.decode(content) == [entry]
    with pytest.raises(CorruptSnapshot):
        snapshots.decode(content + b"\x00")
