"""A log against a model that is nothing but a list of (offset, value), through every way of stopping and starting."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from millstream.protocol.errors import OffsetOutOfRange
from millstream.records.building import encode_batch
from tests.log.making import DAY_MS, NOW_MS, SMALL, commit, lossy_disk, open_log, records_of

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.testing.disk import LossyDisk


class LogMachine(RuleBasedStateMachine):
    """Appends, rolls, truncations, deletions and restarts in any order."""

    disk: LossyDisk
    log: Log

    @initialize(segment_bytes=st.sampled_from([300, 1_000, 5_000]), interval=st.sampled_from([0, 150, 1_000]))
    def begin(self, segment_bytes: int, interval: int) -> None:
        self.disk = lossy_disk()
        self.config = replace(SMALL, segment_bytes=segment_bytes, index_interval_bytes=interval)
        self.log = open_log(self.disk, config=self.config)
        self.model: list[tuple[int, bytes, int]] = []
        self.batches: list[tuple[int, int]] = []
        self.start = self.end = 0
        self.epoch = 0
        self.now_ms = NOW_MS
        self.sequences: dict[int, int] = {}
        self.seen_ms: dict[int, int] = {}
        self.value = 0

    def _record_batch(self, count: int, timestamps: list[int], **fields: object) -> bytearray:
        records = []
        for number in range(count):
            self.value += 1
            records.append((b"k", str(self.value).encode(), (), timestamps[number % len(timestamps)]))
        self.pending = [(self.end + number, record[1], record[3]) for number, record in enumerate(records)]
        return encode_batch(records, **fields)  # type: ignore[arg-type]

    def _appended(self, count: int) -> None:
        self.model += self.pending
        self.batches.append((self.end, self.end + count - 1))
        self.end += count

    @rule(
        count=st.integers(1, 8),
        timestamps=st.lists(st.integers(-50, 50), min_size=1, max_size=4),
        codec=st.sampled_from([0, 0, 1, 3]),
        producer=st.sampled_from([None, 1, 2]),
    )
    def append(self, count: int, timestamps: list[int], codec: int, producer: int | None) -> None:
        fields = {"codec": codec}
        if producer is not None:
            sequence = self.sequences.get(producer, 0)
            fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            self.sequences[producer] = sequence + count
            self.seen_ms[producer] = self.now_ms
        data = self._record_batch(count, [self.now_ms + each for each in timestamps], **fields)
        appended = self.log.append_as_leader(memoryview(data), self.epoch, self.now_ms)
        assert (appended.base_offset, appended.last_offset) == (self.end, self.end + count - 1)
        assert not appended.duplicate
        self._appended(count)

    @rule(producer=st.sampled_from([1, 2]))
    def append_again(self, producer: int) -> None:
        """The newest batch of a producer comes again."""
        known = self.log.producers.get(producer)
        if known is None or not known.batches:
            return
        last = known.batches[-1]
        count = last.last_offset - last.base_offset + 1
        repeated = encode_batch(
            [(None, b"again", (), self.now_ms)] * count,
            producer_id=producer,
            producer_epoch=0,
            base_sequence=last.base_sequence,
        )
        appended = self.log.append_as_leader(repeated, self.epoch, self.now_ms)
        assert appended.duplicate
        assert (appended.base_offset, appended.last_offset) == (last.base_offset, last.last_offset)

    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        """Batches from a leader, with a gap as compaction leaves it."""
        gap = data.draw(st.integers(0, 5))
        count = data.draw(st.integers(1, 4))
        self.end += gap
        made = self._record_batch(count, [self.now_ms], base_offset=self.end, leader_epoch=self.epoch)
        self.log.append_as_follower(made, self.now_ms)
        self._appended(count)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule()
    def become_leader(self) -> None:
        self.epoch += 1
        self.log.epochs.assign(self.epoch, self.log.end_offset)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(self.start, self.end))
        self.log.truncate_to(target, self.now_ms)
        if target < self.end:
            self.batches = [each for each in self.batches if each[1] < target]
            self.end = max((last + 1 for _, last in self.batches), default=self.log.end_offset)
            self._forget_above()
        # After a gap at the cut the log ends with its last batch, not with the offset asked for.
        assert self.log.end_offset == self.end or not self.batches
        self.end = self.log.end_offset
        self.start = min(self.start, self.end)

    def _forget_above(self) -> None:
        self.model = [each for each in self.model if each[0] < self.end]
        self.sequences.clear()
        self._learn_producers()

    def _learn_producers(self) -> None:
        """Producers may be forgotten when they are silent for a day, and found again in the records after a kill."""
        for producer in (1, 2):
            known = self.log.producers.get(producer)
            if known is None:
                silent_ms = self.now_ms - self.seen_ms.pop(producer, 0)
                assert self.sequences.pop(producer, None) is None or silent_ms > DAY_MS - 100
            else:
                assert self.sequences.setdefault(producer, known.last_sequence + 1) == known.last_sequence + 1

    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        commit(self.log)
        offset = data.draw(st.integers(self.start, self.end))
        self.log.advance_start_offset(offset)
        self.start = max(self.start, offset)

    @rule(days=st.sampled_from([0, 1, 9]))
    def retain(self, days: int) -> None:
        commit(self.log)
        self.now_ms += days * DAY_MS
        self.log.enforce_retention(self.now_ms)
        # What retention took is a beginning of the log, in whole segments.
        assert self.log.start_offset >= self.start
        self.start = self.log.start_offset
        self.log.remove_due(self.now_ms)
        self._learn_producers()

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.log.end_offset

    @rule()
    def stop_and_start(self) -> None:
        self.log.close()
        self._reopen(clean=True)
        self._learn_producers()

    @rule(data=st.data())
    def kill_and_start(self, data: st.DataObject) -> None:
        """The process dies: what it wrote is there, checkpoints are as old as they may be."""
        self.disk.crash(keep_unsynced=True)
        recovery_point = data.draw(st.sampled_from([0, self.log.recovery_point]))
        self._reopen(clean=False, recovery_point=recovery_point)
        self._learn_producers()

    def _reopen(self, *, clean: bool, recovery_point: int = 0) -> None:
        self.log = open_log(
            self.disk,
            config=self.config,
            clean=clean,
            recovery_point=recovery_point,
            log_start_offset=self.start,
            now_ms=self.now_ms,
        )
        assert self.log.start_offset == self.start
        assert self.log.end_offset == self.end

    def _expected(self) -> list[tuple[int, bytes, int]]:
        return [each for each in self.model if each[0] >= self.start]

    @invariant()
    def everything_is_readable(self) -> None:
        if not hasattr(self, "model"):
            return
        assert (self.log.start_offset, self.log.end_offset) == (self.start, self.end)
        for max_bytes in (1, 500, 1 << 20):
            found = [
                (record.offset, record.value, record.timestamp) for record in records_of(self.log, max_bytes=max_bytes)
            ]
            assert found == self._expected()

    @rule(data=st.data())
    def look_up(self, data: st.DataObject) -> None:
        expected = self._expected()
        target = self.now_ms + data.draw(st.integers(-60, 60))
        found = self.log.offset_for_timestamp(target)
        newer = [(offset, timestamp) for offset, _, timestamp in expected if timestamp >= target]
        assert (found and found[:2]) == (newer[0] if newer else None)

    @rule(data=st.data())
    def read_somewhere(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start - 2, self.end + 2))
        if not self.start <= offset <= self.end:
            try:
                self.log.read(offset, 100, self.end, at_least_one_batch=True)
            except OffsetOutOfRange:
                return
            raise AssertionError("an offset outside of the log was read")
        fetched = self.log.find(offset, 1 << 20, self.end, at_least_one_batch=True)
        holds_it = [each for each in self.batches if each[1] >= offset]
        assert (fetched is None) == (not holds_it)
        if fetched is not None:
            assert int.from_bytes(fetched.read()[:8], "big", signed=True) == holds_it[0][0]


LogMachine.TestCase.settings = settings(max_examples=50, stateful_step_count=40)
TestLog = LogMachine.TestCase
