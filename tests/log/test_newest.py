"""The batch that was appended last is given from memory: it must be what the file would have given."""

from __future__ import annotations

import pytest

from millstream.log.appending import NEWEST_BYTES_MAX
from millstream.protocol.errors import OffsetOutOfRange, StorageError
from tests.log.making import NOW_MS, batch, commit, fill, lossy_disk, open_log


def test_it_is_what_the_file_holds() -> None:
    log = open_log(lossy_disk())
    fill(log, 5)
    offset = log.newest_offset
    found = log.find(offset, 1 << 20, log.end_offset, at_least_one_batch=True)
    assert found is not None
    assert log.read(offset, 1 << 20, log.end_offset, at_least_one_batch=True) is log.newest
    assert log.newest == found.read()


def test_a_large_one_is_read_from_the_file() -> None:
    log = open_log(lossy_disk(), segment_bytes=100_000)
    fill(log, 1)
    large = batch(1, value=b"v" * NEWEST_BYTES_MAX)
    log.append_as_leader(large, 0, NOW_MS)
    assert log.newest == b""
    found = log.read(log.newest_offset, 1 << 20, log.end_offset, at_least_one_batch=True)
    assert found is not None
    assert len(found) == len(large)


def test_it_goes_when_it_is_cut_off() -> None:
    log = open_log(lossy_disk())
    fill(log, 5)
    log.truncate_to(log.newest_offset, NOW_MS)
    fill(log, 1, epoch=7)
    log.truncate_to(3, NOW_MS)
    log.append_as_follower(_as_sent_by_a_leader(3))
    assert log.read(3, 1 << 20, log.end_offset, at_least_one_batch=True) == _as_sent_by_a_leader(3)


def test_it_is_not_read_below_the_start_above_a_mark_or_from_a_closed_log() -> None:
    log = open_log(lossy_disk())
    fill(log, 5)
    offset = log.newest_offset
    assert log.read(offset, 1 << 20, offset, at_least_one_batch=True) is None
    assert log.read(offset, 10, log.end_offset, at_least_one_batch=False) is None
    commit(log)
    log.advance_start_offset(log.end_offset)
    with pytest.raises(OffsetOutOfRange):
        log.read(offset, 1 << 20, log.end_offset, at_least_one_batch=True)
    log.close()
    with pytest.raises(StorageError):
        log.read(offset, 1 << 20, log.end_offset, at_least_one_batch=True)


def _as_sent_by_a_leader(offset: int) -> bytes:
    leader = open_log(lossy_disk())
    leader.truncate_fully_and_start_at(offset, NOW_MS)
    leader.append_as_leader(batch(1, value=b"another"), 9, NOW_MS)
    return leader.read(offset, 1 << 20, leader.end_offset, at_least_one_batch=True) or b""
