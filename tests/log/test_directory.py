"""A log directory: its lock, its marker of a clean stop, its checkpoints and its folders."""

from __future__ import annotations

import pytest

from millstream.log import checkpoints, names
from millstream.log.directory import LogDirectory
from millstream.protocol.uuid import Uuid
from millstream.testing.disk import LossyDisk, PowerLost
from tests.log.making import NOW_MS, SMALL, TOPIC_ID, batch, commit, fill, lossy_disk, offsets_of

PATH = "/logs/data"
CLEAN = f"{PATH}/.kafka_cleanshutdown"


class FixedClock:
    def wall_ms(self) -> int:
        return NOW_MS

    def monotonic_ms(self) -> int:
        return 0


class Counting:
    """Ids that follow from how many were asked for."""

    def __init__(self) -> None:
        self.made = 0

    def uuid(self) -> Uuid:
        self.made += 1
        return Uuid(self.made.to_bytes(16, "big"))

    def below(self, bound: int) -> int:
        return bound - 1


def open_directory(disk: LossyDisk) -> LogDirectory:
    return LogDirectory.open(disk, PATH, FixedClock(), Counting())


def test_the_directory_belongs_to_one_process() -> None:
    disk = lossy_disk()
    directory = open_directory(disk)
    with pytest.raises(BlockingIOError):
        open_directory(disk)
    directory.close()
    open_directory(disk)


def test_everything_comes_back_after_a_clean_stop() -> None:
    disk = lossy_disk()
    directory = open_directory(disk)
    for number in range(3):
        log = directory.open_or_create("orders", number, TOPIC_ID, SMALL)
        fill(log, number + 1)
        commit(log)
    directory.logs["orders", 2].advance_start_offset(4)
    directory.close(broker_epoch=42)
    assert disk.read_file(CLEAN) == b'{"version":0,"brokerEpoch":42}'
    assert disk.read_file(f"{PATH}/recovery-point-offset-checkpoint") == b"0\n3\norders 0 3\norders 1 6\norders 2 9\n"
    assert disk.read_file(f"{PATH}/log-start-offset-checkpoint") == b"0\n1\norders 2 4\n"
    assert disk.read_file(f"{PATH}/replication-offset-checkpoint") == b"0\n3\norders 0 3\norders 1 6\norders 2 9\n"
    directory = open_directory(disk)
    assert directory.clean
    assert directory.clean_broker_epoch == 42
    assert list(directory.found) == [("orders", 0), ("orders", 1), ("orders", 2)]
    log = directory.open_or_create("orders", 2, TOPIC_ID, SMALL)
    assert (log.start_offset, log.high_watermark, log.end_offset) == (4, 9, 9)


def test_the_marker_is_gone_before_the_first_log_is_opened() -> None:
    """KAFKA-10471: a crash while loading, twice, must not look like a clean stop."""
    disk = lossy_disk()
    directory = open_directory(disk)
    fill(directory.open_or_create("orders", 0, TOPIC_ID, SMALL), 3)
    directory.close()
    for _ in range(2):
        first = open_directory(disk)
        log = first.open_or_create("orders", 0, TOPIC_ID, SMALL)
        log.append_as_leader(batch(), 0, NOW_MS)
        log.active.file.append(b"torn")
        disk.crash(keep_unsynced=True)
        again = open_directory(disk)
        assert not again.clean
        expected = log.end_offset
        recovered = again.open_or_create("orders", 0, TOPIC_ID, SMALL)
        assert offsets_of(recovered) == list(range(expected))
        again.close()
        assert disk.exists(CLEAN)


def test_a_crash_at_any_step_of_the_stop_is_not_a_clean_one() -> None:
    for step in range(1, 100):
        disk = lossy_disk(step)
        directory = open_directory(disk)
        log = directory.open_or_create("orders", 0, TOPIC_ID, SMALL)
        fill(log, 12)
        log.flush()
        directory.write_offset_checkpoints()
        fill(log, 12)
        disk.power_off_at = disk.steps + step
        over = False
        try:
            directory.close()
            over = True
        except PowerLost:
            pass
        disk.crash()
        directory = open_directory(disk)
        log = directory.open_or_create("orders", 0, TOPIC_ID, SMALL)
        assert log.end_offset >= (72 if directory.clean else 36)
        assert offsets_of(log) == list(range(log.end_offset))
        if over:
            assert directory.clean
            return
    raise AssertionError("closing never ended")


def test_a_stop_can_leave_the_syncs_to_others() -> None:
    disk = lossy_disk()
    directory = open_directory(disk)
    for number in range(3):
        fill(directory.open_or_create("orders", number, TOPIC_ID, SMALL), 12)
    targets = directory.prepare_close()
    assert [target.path for target in targets].count(PATH) == 1
    for target in targets:
        target.sync()
    before = disk.steps
    directory.close(targets_synced=True)
    assert disk.steps - before <= 4 * 5, "nothing but checkpoints and the marker is left to write"
    disk.crash()
    directory = open_directory(disk)
    assert directory.clean
    for number in range(3):
        log = directory.open_or_create("orders", number, TOPIC_ID, SMALL)
        assert offsets_of(log) == list(range(36))


def test_an_offline_log_spoils_the_clean_stop() -> None:
    disk = lossy_disk()
    directory = open_directory(disk)
    log = directory.open_or_create("orders", 0, TOPIC_ID, SMALL)
    log.mark_offline(OSError(5, "I/O error"))
    directory.close()
    assert not disk.exists(CLEAN)


def test_logs_that_nobody_recovered_spoil_it_too() -> None:
    disk = lossy_disk()
    directory = open_directory(disk)
    for number in range(2):
        fill(directory.open_or_create("orders", number, TOPIC_ID, SMALL), 1)
    disk.crash(keep_unsynced=True)
    directory = open_directory(disk)
    directory.open_or_create("orders", 0, TOPIC_ID, SMALL)
    directory.close()
    assert not disk.exists(CLEAN)


def test_a_topic_made_again_under_the_same_name_begins_empty() -> None:
    disk = lossy_disk()
    directory = open_directory(disk)
    fill(directory.open_or_create("orders", 0, TOPIC_ID, SMALL), 5)
    directory.close()
    directory = open_directory(disk)
    log = directory.open_or_create("orders", 0, Uuid(b"n" * 16), SMALL)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (0, 0, 0)
    assert [name for name in disk.list_directory(PATH) if name.endswith("-stray")] == [
        "orders-0.00000000000000000000000000000001-stray"
    ]


def test_a_topic_deleted_and_made_again_at_run_time_begins_empty() -> None:
    disk = lossy_disk()
    directory = open_directory(disk)
    log = directory.open_or_create("orders", 0, TOPIC_ID, SMALL)
    fill(log, 5)
    commit(log)
    log.advance_start_offset(4)
    directory.write_offset_checkpoints()
    directory.write_high_watermarks()
    log.delete("f" * 32)
    log = directory.open_or_create("orders", 0, Uuid(b"n" * 16), SMALL)
    assert (log.start_offset, log.end_offset, log.high_watermark) == (0, 0, 0)


def test_deleted_logs_leave_the_checkpoints_and_are_found_for_removal() -> None:
    """Bug 28, KAFKA-5232: with a dot in the topic's name, and the process killed in between."""
    disk = lossy_disk()
    directory = open_directory(disk)
    for name in ("a.b", "c"):
        fill(directory.open_or_create(name, 0, TOPIC_ID, SMALL), 1)
    directory.logs["a.b", 0].delete("f" * 32)
    directory.write_offset_checkpoints()
    assert b"a.b" not in disk.read_file(f"{PATH}/recovery-point-offset-checkpoint")
    disk.crash(keep_unsynced=True)
    directory = open_directory(disk)
    assert directory.to_remove == [f"{PATH}/a.b-0.{'f' * 32}-delete"]
    assert list(directory.found) == [("c", 0)]


@pytest.mark.parametrize("topic", ["..", ".", "a/b", "../x", "", "a b", "a\x00", "ä", "x\n", "/etc"])
def test_no_topic_name_becomes_another_path(topic: str) -> None:
    disk = lossy_disk()
    directory = open_directory(disk)
    with pytest.raises(ValueError, match="cannot be the name"):
        directory.open_or_create(topic, 0, TOPIC_ID, SMALL)


def test_the_metadata_log_is_nobodys_partition() -> None:
    disk = lossy_disk()
    disk.make_directory(f"{PATH}/__cluster_metadata-0")
    assert open_directory(disk).found == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-0", ("orders", 0)),
        ("a-b-12", ("a-b", 12)),
        ("a.b-3", ("a.b", 3)),
        ("orders", None),
        ("orders-", None),
        ("orders-0.0123456789abcdef0123456789abcdef-delete", None),
        ("orders-delete", None),
        ("-0", None),
    ],
)
def test_folders_of_partitions(name: str, expected: tuple[str, int] | None) -> None:
    assert names.parse_partition_directory(name) == expected


def test_long_names_fit_when_marked() -> None:
    marked = names.marked_directory("t" * 249, 1234567890, "0" * 32, "-delete")
    assert len(marked) == 255
    assert marked.endswith(f"-1234567890.{'0' * 32}-delete")
    assert names.parse_marked_directory(marked) == ("t" * (255 - 51), 1234567890, "delete")


def test_a_checkpoint_that_is_not_whole_counts_as_empty() -> None:
    whole = checkpoints.encode({("a", 0): 5, ("b", 12): 77})
    assert checkpoints.decode(whole) == {("a", 0): 5, ("b", 12): 77}
    for size in range(len(whole)):
        assert checkpoints.decode(whole[:size]) is None
