"""Leader epochs: what truncation by epoch stands on."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.log.epochs import EpochStart, parse
from tests.log.making import FOLDER, NOW_MS, batch, commit, fill, lossy_disk, offsets_of, open_log

FILE = f"{FOLDER}/leader-epoch-checkpoint"


def test_the_file_is_kafkas() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 2, epoch=0)
    fill(log, 1, epoch=3)
    assert disk.read_file(FILE) == b"0\n2\n0 0\n3 6\n"


def test_an_epoch_is_kept_from_the_moment_of_the_election() -> None:
    """KAFKA-7415: become leader, die before the first write."""
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 1, epoch=1)
    log.epochs.assign(2, log.end_offset)
    disk.crash(keep_unsynced=True)
    log = open_log(disk, clean=False)
    assert log.epochs.entries == ((1, 0), (2, 3))


def test_epochs_that_wrote_nothing_leave_one_entry() -> None:
    """KAFKA-10706: elections without writes."""
    log = open_log(lossy_disk())
    fill(log, 1, epoch=1)
    for epoch in (2, 3, 4):
        log.epochs.assign(epoch, log.end_offset)
    assert log.epochs.entries == ((1, 0), (4, 3))
    assert log.end_offset_for_epoch(2) == (1, 3)
    assert not log.epochs.assign(4, 7)


def test_the_file_may_be_cut_at_every_byte() -> None:
    """KAFKA-16541: power fails before the file is synced. What the batches say is found again."""
    disk = lossy_disk()
    log = open_log(disk)
    for epoch in (0, 3, 12):
        fill(log, 4, epoch=epoch)
    log.close()
    whole = disk.read_file(FILE)
    for size in range(len(whole)):
        disk.replace_file(FILE, whole[:size])
        for clean in (True, False):
            log = open_log(disk, clean=clean)
            assert log.epochs.entries == ((0, 0), (3, 12), (12, 24))
            assert offsets_of(log) == list(range(36))


@pytest.mark.parametrize(
    "content",
    [b"", b"1\n0\n", b"0\n2\n0 0\n", b"0\n1\n0\n", b"0\n1\na b\n", b"0\n2\n3 0\n1 5\n", b"\xff\xfe", b"0\n1\n0 0"],
)
def test_a_file_that_is_not_whole_is_not_believed(content: bytes) -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 1, epoch=7)
    log.close()
    disk.replace_file(FILE, content)
    assert open_log(disk).epochs.entries == ((7, 0),)
    assert parse(disk.read_file(FILE)) == [(7, 0)]


def test_truncation_takes_epochs_with_it() -> None:
    log = open_log(lossy_disk())
    for epoch in range(4):
        fill(log, 2, epoch=epoch)
    log.truncate_to(12, NOW_MS)
    assert log.epochs.entries == ((0, 0), (1, 6))
    assert log.end_offset_for_epoch(1) == (1, 12)
    assert log.end_offset_for_epoch(2) == (-1, -1)


def test_the_start_of_the_log_moves_the_start_of_its_epoch() -> None:
    log = open_log(lossy_disk())
    for epoch in range(4):
        fill(log, 2, epoch=epoch)
    commit(log)
    log.advance_start_offset(8)
    assert log.epochs.entries == ((1, 8), (2, 12), (3, 18))


def test_epochs_come_back_from_batches_after_a_kill() -> None:
    """A follower that met new epochs and died with an old file."""
    disk = lossy_disk()
    log = open_log(disk)
    log.append_as_follower(batch(2, base_offset=0, leader_epoch=1), NOW_MS)
    old = disk.read_file(FILE)
    log.append_as_follower(batch(2, base_offset=2, leader_epoch=2), NOW_MS)
    disk.replace_file(FILE, old)
    assert open_log(disk, clean=False).epochs.entries == ((1, 0), (2, 2))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12), st.integers(0, 40))
def test_where_an_epoch_ended_agrees_with_the_batches(steps: list[tuple[int, int]], asked: int) -> None:
    log = open_log(lossy_disk())
    epoch = 0
    written: list[EpochStart] = []
    for bump, batches in steps:
        epoch += bump
        log.epochs.assign(epoch, log.end_offset)
        for _ in range(batches):
            written.append(EpochStart(epoch, log.end_offset))
            log.append_as_leader(batch(), epoch, NOW_MS)
    found_epoch, end_offset = log.end_offset_for_epoch(asked)
    if asked > log.epochs.latest_epoch or not steps:
        assert (found_epoch, end_offset) == (-1, -1)
        return
    later = [start for at, start in written if at > asked]
    assert end_offset == (later[0] if later else log.end_offset)
    assert found_epoch <= asked
    earlier = [at for at, _ in written if at <= asked]
    if earlier and asked < log.epochs.latest_epoch:
        assert found_epoch >= earlier[-1]
