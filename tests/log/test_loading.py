"""Opening: after a clean stop without a scan, after anything else by Kafka's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from millstream.log.log import Log
from millstream.protocol.errors import InconsistentTopicId
from millstream.protocol.uuid import Uuid
from millstream.runtime.real import RealDisk
from tests.log.making import FOLDER, NOW_MS, SMALL, batch, commit, files_of, fill, lossy_disk, offsets_of, open_log

if TYPE_CHECKING:
    from pathlib import Path


def test_a_clean_start_reads_no_more_than_the_end() -> None:
    """Damage in the middle goes unnoticed by the start itself, and is met by whoever reads it."""
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=1 << 20)
    fill(log, 100)
    log.close()
    path = f"{FOLDER}/00000000000000000000.log"
    content = bytearray(disk.read_file(path))
    content[1000] ^= 0xFF
    disk.replace_file(path, bytes(content))
    assert open_log(disk, segment_bytes=1 << 20).end_offset == 300
    assert open_log(disk, segment_bytes=1 << 20, clean=False).end_offset < 30


@pytest.mark.parametrize("recovery_point", [0, 13, 60, 61, 10_000])
def test_a_torn_tail_is_cut_at_the_last_whole_batch(recovery_point: int) -> None:
    """Also with a recovery point beyond the end (KAFKA-10101)."""
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 20)
    path = log.active.path
    whole = disk.read_file(path)
    last = log.active.position_of(57)
    assert last is not None
    for size in range(last + 1, len(whole)):
        disk.replace_file(path, whole[:size])
        log = open_log(disk, clean=False, recovery_point=recovery_point)
        assert log.end_offset == 57
        assert log.recovery_point <= 57
        assert disk.size(path) == last
    fill(log, 1)
    assert offsets_of(log) == list(range(60))


def test_a_flipped_bit_ends_the_log_there_and_later_segments_go() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=600)
    fill(log, 20)
    damaged = log.segments[2]
    content = bytearray(disk.read_file(damaged.path))
    content[-1] ^= 1
    disk.replace_file(damaged.path, bytes(content))
    log = open_log(disk, segment_bytes=600, clean=False)
    assert log.active.base_offset == damaged.base_offset
    assert offsets_of(log) == list(range(log.end_offset))
    assert log.end_offset < 20 * 3
    fill(log, 1)


def test_what_lies_below_the_recovery_point_is_not_scanned() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=600)
    fill(log, 20)
    content = bytearray(disk.read_file(log.segments[0].path))
    content[-1] ^= 1
    disk.replace_file(log.segments[0].path, bytes(content))
    log = open_log(disk, segment_bytes=600, clean=False, recovery_point=30)
    assert log.end_offset == 60


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "cut", "zeros", "garbage at the end"])
@pytest.mark.parametrize("clean", [True, False])
def test_indexes_are_rebuilt_where_they_cannot_be_right(suffix: str, damage: str, clean: bool) -> None:
    disk = lossy_disk()
    log = open_log(disk, index_interval_bytes=100)
    for number in range(30):
        log.append_as_leader(batch(3, timestamp=NOW_MS + number), 0, NOW_MS)
    log.close()
    expected = {name: disk.read_file(f"{FOLDER}/{name}") for name in files_of(disk, suffix)}
    for name, content in expected.items():
        path = f"{FOLDER}/{name}"
        if damage == "missing":
            disk.remove(path)
        elif damage == "cut":
            disk.replace_file(path, content[:-3])
        elif damage == "zeros":
            disk.replace_file(path, content + bytes(96))
        else:
            disk.replace_file(path, content + b"\xff" * 5)
    log = open_log(disk, index_interval_bytes=100, clean=clean)
    assert offsets_of(log) == list(range(90))
    for offset in range(90):
        found = log.find(offset, 1, 90, at_least_one_batch=True)
        assert found is not None
        assert int.from_bytes(found.read()[:8], "big") == offset - offset % 3
    for number in range(30):
        at = log.offset_for_timestamp(NOW_MS + number)
        assert at is not None
        assert at.offset == number * 3
    log.close()
    assert {name: disk.read_file(f"{FOLDER}/{name}") for name in files_of(disk, suffix)} == expected


def test_kafkas_preallocated_indexes_of_an_active_segment_are_rebuilt() -> None:
    disk = lossy_disk()
    log = open_log(disk, segment_bytes=1 << 20)
    fill(log, 10)
    for suffix in (".index", ".timeindex"):
        disk.replace_file(f"{FOLDER}/00000000000000000000{suffix}", bytes(10_000))
    log = open_log(disk, segment_bytes=1 << 20, clean=False)
    fill(log, 10)
    log.close()
    assert disk.size(f"{FOLDER}/00000000000000000000.index") < 1_000
    assert offsets_of(open_log(disk, segment_bytes=1 << 20)) == list(range(60))


def test_orphans_and_leftovers_of_removals_go() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 1)
    log.close()
    for name in ("00000000000000000900.index", "00000000000000000000.log.deleted", "00000000000000000007.log.cleaned"):
        disk.create(f"{FOLDER}/{name}")
    log = open_log(disk)
    assert offsets_of(log) == [0, 1, 2]
    assert [name for name in disk.list_directory(FOLDER) if name.endswith((".deleted", ".cleaned"))] == []
    assert not disk.exists(f"{FOLDER}/00000000000000000900.index")


def test_a_finished_replacement_is_put_in_place() -> None:
    """KAFKA-12520: segments 0 and 9 were merged into one, and the process died before any rename."""
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 3)
    log.roll(NOW_MS)
    fill(log, 3)
    log.roll(NOW_MS)
    fill(log, 1)
    log.close()
    merged = b"".join(disk.read_file(f"{FOLDER}/{name}") for name in files_of(disk, ".log")[:2])
    for survivors in range(3):
        again = lossy_disk()
        again.make_directory(FOLDER)
        for name in disk.list_directory(FOLDER):
            again.replace_file(f"{FOLDER}/{name}", disk.read_file(f"{FOLDER}/{name}"))
        again.replace_file(f"{FOLDER}/00000000000000000000.log.swap", merged)
        for name in files_of(disk, ".log")[:survivors]:
            again.rename(f"{FOLDER}/{name}", f"{FOLDER}/{name}.deleted")
        log = open_log(again, segment_bytes=1 << 20)
        assert [segment.base_offset for segment in log.segments] == [0, 18]
        assert offsets_of(log) == list(range(21))


def test_a_replacement_that_was_not_finished_is_dropped() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 3)
    log.roll(NOW_MS)
    fill(log, 3)
    log.close()
    disk.replace_file(f"{FOLDER}/00000000000000000000.log.swap", b"half of something")
    disk.replace_file(f"{FOLDER}/00000000000000000000.index.cleaned", b"")
    assert offsets_of(open_log(disk)) == list(range(18))
    assert files_of(disk, ".swap") == []


def test_a_lost_folder_entry_loses_only_what_was_not_synced() -> None:
    """KAFKA-3968: the folder is synced with the first flush, so its files are there afterwards."""
    for seed in range(20):
        disk = lossy_disk(seed)
        log = open_log(disk)
        fill(log, 2)
        log.flush()
        fill(log, 1)
        disk.crash()
        log = open_log(disk, clean=False, recovery_point=6)
        assert log.end_offset >= 6
        assert offsets_of(log) == list(range(log.end_offset))


def test_a_start_offset_above_the_end_begins_the_log_there() -> None:
    disk = lossy_disk()
    log = open_log(disk)
    fill(log, 2)
    log.close()
    for clean in (True, False):
        log = open_log(disk, clean=clean, log_start_offset=50)
        assert (log.start_offset, log.end_offset) == (50, 50)


def test_an_empty_folder_begins_at_the_log_start() -> None:
    log = open_log(lossy_disk(), log_start_offset=17)
    assert log.append_as_leader(batch(), 0, NOW_MS).base_offset == 17


def test_a_folder_belongs_to_one_topic_id() -> None:
    disk = lossy_disk()
    open_log(disk).close()
    assert disk.read_file(f"{FOLDER}/partition.metadata") == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    with pytest.raises(InconsistentTopicId):
        Log.open(
            disk,
            FOLDER,
            SMALL,
            topic_id=Uuid(b"x" * 16),
            clean=True,
            recovery_point=0,
            log_start_offset=0,
            now_ms=NOW_MS,
        )


def test_a_torn_partition_metadata_is_written_anew() -> None:
    disk = lossy_disk()
    open_log(disk).close()
    path = f"{FOLDER}/partition.metadata"
    whole = disk.read_file(path)
    for size in range(len(whole)):
        disk.replace_file(path, whole[:size])
        open_log(disk).close()
        assert disk.read_file(path) == whole


def test_the_real_disk_does_the_same(tmp_path: Path) -> None:
    folder = f"{tmp_path}/topic-0"
    disk = RealDisk()
    log = open_log(disk, folder, index_interval_bytes=100)
    fill(log, 40)
    commit(log)
    assert offsets_of(log) == list(range(120))
    log.close()
    for clean in (True, False):
        log = open_log(disk, folder, index_interval_bytes=100, clean=clean)
        assert offsets_of(log, max_bytes=300) == list(range(120))
        found = log.offset_of_max_timestamp()
        assert found is not None
        assert found.offset == 0
        log.truncate_to(50, NOW_MS)
        fill(log, 24)
        assert offsets_of(log) == list(range(120))
        log.close()
