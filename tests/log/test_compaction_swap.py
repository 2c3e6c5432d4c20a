"""Putting cleaned segments in place: through crashes at every step, and while the log goes on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.log.compaction import Compacted, Compactor
from millstream.log.directory import LogDirectory
from millstream.protocol.errors import StorageError
from millstream.runtime.ports import ChildFailed
from millstream.runtime.real import RealDisk, RealRandom, RealWorkers
from millstream.testing.disk import PowerLost
from tests.log.compacting import (
    COMPACTED,
    FixedClock,
    InlineWorkers,
    compact_now,
    end_transaction,
    put,
    values_of,
)
from tests.log.making import NOW_MS, TOPIC_ID, lossy_disk, open_log
from tests.support.apache_kafka import dump_log_segments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.log.log import Log
    from millstream.runtime.ports import Disk

HOUR_MS = 3_600_000
KEY = ("topic", 0)


def write_some(log: Log) -> dict[bytes, bytes]:
    """Many small segments with old and new values, a transaction and a producer; returns what is newest."""
    producer = {"producer_id": 3, "producer_epoch": 0}
    for number in range(18):
        put(log, (b"k%d" % (number % 4), b"v%d" % number), base_sequence=number, **producer)
        if number % 3 == 2:
            log.roll(NOW_MS)
    put(log, (b"k0", b"aborted"), producer_id=4, producer_epoch=0, base_sequence=0, transactional=True)
    end_transaction(log, 4, is_commit=False)
    put(log, (b"k9", b"only"))
    log.roll(NOW_MS)
    return newest_of(log)


def newest_of(log: Log) -> dict[bytes, bytes]:
    return {key: value for _, key, value in values_of(log) if key and value and value.startswith((b"v", b"only"))}


def a_directory(disk: Disk, **changes: object) -> tuple[LogDirectory, Log]:
    directory = LogDirectory.open(disk, "/data", FixedClock(), RealRandom())
    return directory, directory.open_or_create(*KEY, TOPIC_ID, replace(COMPACTED, **changes))  # type: ignore[arg-type]


def run(directory: LogDirectory, disk: Disk, meanwhile: Callable[[], object] = lambda: None) -> Compactor:
    compactor = Compactor([directory], InlineWorkers(disk, meanwhile), FixedClock())
    asyncio.run(compactor.run_once())
    return compactor


@pytest.mark.parametrize("loses_power", [False, True])
def test_23_a_crash_at_any_step_loses_no_newest_value(loses_power: bool) -> None:
    """A kill keeps all that was written; a loss of power keeps what was synced, and any part of the rest."""
    steps = 0
    finished = False
    while not finished:
        steps += 1
        for seed in range(5 if loses_power else 1):
            finished = crash_after(steps, seed, loses_power=loses_power)
    assert steps > 40


def crash_after(steps: int, seed: int, *, loses_power: bool) -> bool:
    """Stop a compaction after so many changes of the disk; whether it was finished by then."""
    disk = lossy_disk(seed=1_000 * seed + steps)
    log = open_log(disk, config=COMPACTED)
    expected = write_some(log)
    log.flush()
    end_offset, recovery_point = log.end_offset, log.recovery_point
    disk.power_off_at = disk.steps + steps
    try:
        compact_now(log)
    except PowerLost:
        finished = False
    else:
        finished = True
    disk.crash(keep_unsynced=not loses_power)
    again = open_log(disk, config=COMPACTED, clean=False, recovery_point=recovery_point)
    again.advance_high_watermark(end_offset)
    assert again.end_offset == end_offset, disk.last_step
    assert newest_of(again) == expected, disk.last_step
    offsets = [offset for offset, *_ in values_of(again)]
    assert offsets == sorted(set(offsets)), disk.last_step
    assert not [name for name in disk.list_directory(log.directory) if name.endswith((".cleaned", ".swap"))]
    assert compact_now(again).damage is None, disk.last_step
    assert newest_of(again) == expected, disk.last_step
    return finished


def test_the_dirtiest_log_is_cleaned_and_the_checkpoint_moves() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    other = directory.open_or_create("other", 0, None, replace(COMPACTED, compact=False))
    expected = write_some(log)
    write_some(other)
    before = log.size_bytes
    compactor = run(directory, disk)
    assert newest_of(log) == expected
    assert log.size_bytes < before
    assert directory.cleaner_offsets == {KEY: log.active.base_offset}
    assert b"topic 0 21" in disk.read_file("/data/cleaner-offset-checkpoint")
    assert [name for name in disk.list_directory(log.directory) if name.startswith("compaction")] == []
    assert asyncio.run(compactor.run_once()) is None


def test_old_files_are_removed_after_their_delay() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    write_some(log)
    run(directory, disk)
    assert [name for name in disk.list_directory(log.directory) if name.endswith(".deleted")]
    assert log.remove_due(NOW_MS + 1_000) is None
    assert not [name for name in disk.list_directory(log.directory) if name.endswith(".deleted")]


def test_what_is_appended_meanwhile_is_kept() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    expected = write_some(log)

    def meanwhile() -> None:
        put(log, (b"k1", b"v new"))
        log.roll(NOW_MS)
        put(log, (b"k2", b"v newer"))

    run(directory, disk, meanwhile)
    assert newest_of(log) == expected | {b"k1": b"v new", b"k2": b"v newer"}


def test_retention_meanwhile_wins() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk, delete=True, retention_ms=-1)
    expected = write_some(log)

    def meanwhile() -> None:
        log.advance_start_offset(4)
        assert log.enforce_retention(NOW_MS) == 1

    run(directory, disk, meanwhile)
    assert newest_of(log) == expected
    assert log.start_offset == 4
    assert log.segments[0].base_offset == 3
    assert not [name for name in disk.list_directory(log.directory) if name.endswith((".cleaned", ".swap"))]
    run(directory, disk)
    assert newest_of(log) == expected


def test_after_a_truncation_nothing_is_replaced() -> None:
    """What was left out for a newer record must not be lost with that record."""
    disk = lossy_disk()
    directory, log = a_directory(disk)
    put(log, (b"k", b"v old"))
    log.roll(NOW_MS)
    put(log, (b"k", b"v new"))
    log.roll(NOW_MS)
    run(directory, disk, lambda: log.truncate_to(1, NOW_MS))
    assert newest_of(log) == {b"k": b"v old"}
    assert directory.cleaner_offsets == {}


def test_a_truncation_that_was_written_over_is_noticed() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    put(log, (b"k", b"v old"))
    log.roll(NOW_MS)
    put(log, (b"k", b"v new"))
    log.roll(NOW_MS)

    def meanwhile() -> None:
        log.truncate_to(1, NOW_MS)
        put(log, (b"j", b"v else, and longer"))
        log.roll(NOW_MS)

    run(directory, disk, meanwhile)
    assert newest_of(log) == {b"k": b"v old", b"j": b"v else, and longer"}


def test_a_topic_may_be_deleted_meanwhile() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    write_some(log)
    run(directory, disk, lambda: log.delete("0" * 32))
    assert directory.cleaner_offsets == {}


def test_a_log_may_be_closed_meanwhile() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    expected = write_some(log)
    run(directory, disk, log.close)
    assert not [name for name in disk.list_directory(log.directory) if name.endswith(".deleted")]
    again = open_log(disk, log.directory, config=COMPACTED)
    again.advance_high_watermark(again.end_offset)
    assert newest_of(again) == expected


def test_a_run_that_is_cancelled_leaves_everything_as_it_was() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    write_some(log)
    before = values_of(log)

    async def cancel_at(step: int) -> None:
        task = asyncio.ensure_future(Compactor([directory], InlineWorkers(disk), FixedClock()).run_once())
        for _ in range(step):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    for step in (1, 2, 3):
        asyncio.run(cancel_at(step))
        assert not [name for name in disk.list_directory(log.directory) if name.endswith((".cleaned", ".swap"))]
        assert {key for _, key, _ in values_of(log)} == {key for _, key, _ in before}
        assert directory.cleaner_offsets == {}


def test_a_failing_disk_takes_the_partition_offline_and_the_next_start_finishes() -> None:
    for step in range(1, 200):
        disk = lossy_disk(seed=step)
        directory, log = a_directory(disk)
        expected = write_some(log)
        log.flush()
        disk.fail_at[disk.steps + step] = 5
        try:
            run(directory, disk)
        except StorageError:
            assert log.is_offline
        assert disk.steps >= step
        disk.fail_at.clear()
        end_offset = log.end_offset
        directory.let_go()
        again = open_log(disk, log.directory, config=COMPACTED, clean=False)
        again.advance_high_watermark(end_offset)
        assert newest_of(again) == expected, step
        if not log.is_offline:
            break
    assert step > 30


def test_a_damaged_partition_is_not_tried_again() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    write_some(log)
    segment = log.segments[1]
    content = bytearray(disk.read_file(segment.path))
    content[30] ^= 1
    disk.replace_file(segment.path, bytes(content))
    segment.close_file()
    compactor = run(directory, disk)
    assert list(compactor.uncleanable) == [KEY]
    assert directory.cleaner_offsets == {}
    assert asyncio.run(compactor.run_once()) is None


def test_a_truncation_lowers_the_checkpoint() -> None:
    disk = lossy_disk()
    directory, log = a_directory(disk)
    write_some(log)
    run(directory, disk)
    log.flush()
    directory.write_offset_checkpoints()
    directory.truncate(*KEY, 7)
    assert log.end_offset <= 7
    assert directory.cleaner_offsets == {KEY: 7}
    assert b"topic 0 7" in disk.read_file("/data/cleaner-offset-checkpoint")
    assert f"topic 0 {log.end_offset}".encode() in disk.read_file("/data/recovery-point-offset-checkpoint")


def test_a_child_that_fails_does_not_keep_the_others_waiting() -> None:
    disk = lossy_disk()
    directory, first = a_directory(disk)
    second = directory.open_or_create("topic", 1, TOPIC_ID, COMPACTED)
    write_some(first)
    write_some(second)

    class Failing(InlineWorkers):
        async def in_child(self, module: str, arguments: Sequence[str]) -> None:
            if arguments == [first.directory]:
                raise ChildFailed(module, 1, "no memory")
            await super().in_child(module, arguments)

    compactor = Compactor([directory], Failing(disk), FixedClock(NOW_MS + HOUR_MS))
    with pytest.raises(ChildFailed):
        asyncio.run(compactor.run_once())
    done = asyncio.run(compactor.run_once())
    assert done is not None
    assert done.partition == ("topic", 1)
    with pytest.raises(ChildFailed):
        asyncio.run(compactor.run_once())


def on_a_real_disk(folder: Path) -> tuple[LogDirectory, Log]:
    directory = LogDirectory.open(RealDisk(), str(folder / "data"), FixedClock(), RealRandom())
    return directory, directory.open_or_create(*KEY, TOPIC_ID, COMPACTED)


async def compact_in_a_child(directory: LogDirectory) -> Compacted | None:
    workers = RealWorkers()
    try:
        return await Compactor([directory], workers, FixedClock(NOW_MS + HOUR_MS)).run_once()
    finally:
        workers.close()


def test_the_work_is_done_by_a_child_process(tmp_path: Path) -> None:
    directory, log = on_a_real_disk(tmp_path)
    expected = write_some(log)
    done = asyncio.run(compact_in_a_child(directory))
    assert done is not None
    assert done.bytes_after < done.bytes_before
    assert newest_of(log) == expected
    directory.close()


@pytest.mark.java
def test_apache_kafka_reads_what_compaction_wrote(tmp_path: Path) -> None:
    directory, log = on_a_real_disk(tmp_path)
    write_some(log)
    put(log, (b"k1", None), (b"k2", b"v" * 300), codec=4)
    put(log, (b"k3", b"v"), (b"k3", b"w"), codec=2)
    log.roll(NOW_MS)
    asyncio.run(compact_in_a_child(directory))
    log.remove_due(NOW_MS + 24 * HOUR_MS)
    directory.close()
    files = sorted(Path(log.directory).glob("*.log")) + sorted(Path(log.directory).glob("*index"))
    for flags in (("--deep-iteration",), ("--index-sanity-check",), ("--verify-index-only",)):
        dumped = dump_log_segments(files, *flags)
        assert dumped.returncode == 0, dumped.stderr
        said = dumped.stdout + dumped.stderr
        assert not [word for word in ("Exception", "ismatch", "isvalid: false") if word in said]
