"""A log is stopped after every single write, fsync and rename, by a kill or by loss of power, and has to come back.

A kill keeps all that was written: nothing that was acknowledged may be missing. Loss of power keeps what was synced:
nothing below the recovery point may be missing. Either way what is left is a beginning of what was written, without
holes, and the log goes on from there.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from millstream.log.log import Origin
from millstream.records.building import encode_batch, end_transaction_marker
from millstream.testing.disk import PowerLost
from tests.log.making import NOW_MS, batch, lossy_disk, open_log, records_of

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.testing.disk import LossyDisk

STEPS_MAX = 2_000


@dataclass
class Story:
    """What was done to a log up to the crash, and what its owner was told."""

    written: list[bytes] = field(default_factory=list)
    acknowledged: int = 0
    synced: int = 0
    start_offset: int = 0
    epoch: int = 0

    def tell(self, log: Log) -> None:
        sequence = 0
        for step in range(60):
            if step % 20 == 19:
                self.epoch += 1
                log.epochs.assign(self.epoch, log.end_offset)
            if step % 9 == 8:
                marker = end_transaction_marker(
                    commit=step % 2 == 0, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp=NOW_MS
                )
                self._append(log, marker, [b"marker"], Origin.COORDINATOR)
            values = [f"{step}.{number}".encode() for number in range(3)]
            made = encode_batch(
                [(b"k", value, (), NOW_MS) for value in values],
                producer_id=9,
                producer_epoch=0,
                base_sequence=sequence,
                transactional=True,
            )
            sequence += 3
            self._append(log, made, values, Origin.CLIENT)
            if step % 7 == 6:
                end_offset = log.end_offset
                log.flush()
                self.synced = end_offset
            if step == 45:
                log.advance_high_watermark(log.end_offset)
                log.advance_start_offset(50)
                log.enforce_retention(NOW_MS)
                self.start_offset = log.start_offset
            if step == 50:
                log.remove_due(NOW_MS + 10_000)
        log.close()
        self.synced = log.end_offset

    def _append(self, log: Log, made: bytearray, values: list[bytes], origin: Origin) -> None:
        self.written += values
        log.append_as_leader(made, self.epoch, NOW_MS, origin=origin)
        self.acknowledged = log.end_offset


def run_until(disk: LossyDisk, step: int) -> tuple[Story, bool]:
    """Live the story until the step; says whether it was over before."""
    story = Story()
    disk.power_off_at = step
    try:
        story.tell(open_log(disk, segment_bytes=1_000))
    except PowerLost:
        return story, False
    return story, True


@pytest.mark.parametrize(("kill", "seeds"), [(True, 1), (False, 6)], ids=["kill", "power"])
def test_a_crash_at_any_step_loses_nothing_that_was_promised(kill: bool, seeds: int) -> None:
    for step in range(2, STEPS_MAX):
        for seed in range(seeds):
            disk = lossy_disk(seed=step * seeds + seed)
            story, over = run_until(disk, step)
            disk.crash(keep_unsynced=kill)
            assert_recovers(disk, story, story.acknowledged if kill else story.synced)
        if over:
            return
    raise AssertionError("the story never ended")


def assert_recovers(disk: LossyDisk, story: Story, promised: int) -> None:
    where = f"after step {disk.steps}: {disk.last_step}"
    log = open_log(disk, segment_bytes=1_000, clean=False, recovery_point=min(story.synced, 90))
    assert log.end_offset >= promised, where
    assert log.start_offset <= max(story.start_offset, 50), where
    found = records_of(log)
    assert [record.offset for record in found] == list(range(log.start_offset, log.end_offset)), where
    values = [b"marker" if record.key != b"k" else record.value for record in found]
    assert values == story.written[log.start_offset : log.end_offset], where
    assert_goes_on(log, story, where)


def assert_goes_on(log: Log, story: Story, where: str) -> None:
    """The producer's next batch fits, its newest one is known, and a clean restart keeps all of it."""
    known = log.producers.get(9)
    data = [record for record in records_of(log) if record.key == b"k"]
    if known is not None and known.batches:
        assert (
            known.last_sequence == 3 * sum(value != b"marker" for value in story.written[: log.end_offset]) // 3 - 1
        ), where
        assert known.last_offset == data[-1].offset, where
    next_sequence = 0 if known is None else known.last_sequence + 1
    next_offset = log.end_offset
    made = encode_batch(
        [(b"k", b"more", (), NOW_MS)], producer_id=9, producer_epoch=0, base_sequence=next_sequence, transactional=True
    )
    assert log.append_as_leader(made, story.epoch + 1, NOW_MS).base_offset == next_offset, where
    log.close()
    again = open_log(log.disk, segment_bytes=1_000, clean=True, log_start_offset=log.start_offset)
    assert (again.start_offset, again.end_offset) == (log.start_offset, log.end_offset), where
    assert again.epochs.entries == log.epochs.entries, where
    assert records_of(again)[-1].value == b"more", where
    assert again.aborted_transactions(0, again.end_offset) == log.aborted_transactions(0, log.end_offset), where


@pytest.mark.parametrize("seed", range(5))
def test_what_was_truncated_does_not_come_back_with_the_power(seed: int) -> None:
    """A follower is cut where its leader's log differs, rolls, and syncs what came instead: the cut is synced, too."""
    disk = lossy_disk(seed)
    log = open_log(disk)
    log.append_as_leader(batch(value=b"stays"), 0, NOW_MS)
    log.append_as_leader(batch(value=b"is cut off"), 0, NOW_MS)
    log.flush()
    log.truncate_to(1, NOW_MS)
    log.roll(NOW_MS)
    log.append_as_leader(batch(value=b"comes instead"), 1, NOW_MS)
    log.flush()
    disk.crash(keep_unsynced=False)
    again = open_log(disk, clean=False, recovery_point=log.recovery_point)
    assert [(record.offset, record.value) for record in records_of(again)] == [(0, b"stays"), (1, b"comes instead")]
