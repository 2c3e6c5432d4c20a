"""Compaction against a naive model: the newest value of a key is never lost, and old ones do go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from millstream.records.building import assemble
from millstream.records.batch import read_header
from millstream.records.building import encode_batch
from tests.log.compacting import COMPACTED, compact_now, end_transaction, plan_for
from tests.log.making import NOW_MS, commit, lossy_disk, open_log, records_of

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.records.batch import Record
    from millstream.testing.disk import LossyDisk

KEYS = [b"a", b"b", b"c", b"a key that is longer than sixteen bytes", b"another key longer than sixteen bytes", b""]
keys = st.sampled_from(KEYS)
values = st.one_of(st.none(), st.binary(max_size=8))


class CompactedLog(RuleBasedStateMachine):
    """Appends, transactions, compactions, time and restarts in any order."""

    disk: LossyDisk
    log: Log

    @initialize(segment_bytes=st.sampled_from([300, 600, 2_000]))
    def begin(self, segment_bytes: int) -> None:
        self.disk = lossy_disk()
        self.changes = {"segment_bytes": segment_bytes}
        self.log = open_log(self.disk, config=COMPACTED, **self.changes)
        self.written: dict[int, Record] = {}
        self.newest: dict[bytes, int] = {}
        self.now_ms = NOW_MS
        self.checkpoint = 0
        self.sequences = {1: 0, 2: 0}
        self.open: dict[int, list[tuple[bytes, int]]] = {}
        self.aborted: set[int] = set()

    def _append(self, pairs: list[tuple[bytes, bytes | None]], codec: int, producer: int | None) -> None:
        fields: dict[str, object] = {}
        if producer is not None:
            fields = {
                "producer_id": producer,
                "producer_epoch": 0,
                "base_sequence": self.sequences[producer],
                "transactional": producer == 2,
            }
            self.sequences[producer] += len(pairs)
        batch = encode_batch([(key, value, (), self.now_ms) for key, value in pairs], codec=codec, **fields)  # type: ignore[arg-type]
        base = self.log.append_as_leader(batch, 0, self.now_ms).base_offset
        commit(self.log)
        for delta, (key, _) in enumerate(pairs):
            if producer == 2:
                self.open.setdefault(2, []).append((key, base + delta))
            else:
                self.newest[key] = max(self.newest.get(key, -1), base + delta)

    @rule(
        pairs=st.lists(st.tuples(keys, values), min_size=1, max_size=5),
        codec=st.sampled_from([0, 0, 2, 4]),
        producer=st.sampled_from([None, None, 1, 2]),
    )
    def append(self, pairs: list[tuple[bytes, bytes | None]], codec: int, producer: int | None) -> None:
        self._append(pairs, codec, producer)

    @rule(is_commit=st.booleans())
    def end(self, is_commit: bool) -> None:
        offset = end_transaction(self.log, 2, is_commit=is_commit, timestamp=self.now_ms)
        assert offset >= 0
        for key, at in self.open.pop(2, []):
            if is_commit:
                self.newest[key] = max(self.newest.get(key, -1), at)
            else:
                self.aborted.add(at)

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now_ms)

    @rule(ms=st.sampled_from([1, 5_000, 20_000]))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    @rule(keys_max=st.sampled_from([1, 2, 1_000]))
    def compact(self, keys_max: int) -> None:
        for record in records_of(self.log):
            self.written.setdefault(record.offset, record)
        before = {record.offset: record for record in records_of(self.log)}
        upper = plan_for(self.log, self.checkpoint, now_ms=self.now_ms).upper_bound_offset
        result = compact_now(self.log, self.checkpoint, now_ms=self.now_ms, keys_max=keys_max)
        assert result.damage is None
        assert result.opaque_batches == 0
        assert self.checkpoint <= result.end_offset <= max(upper, self.checkpoint)
        assert result.end_offset > self.checkpoint or upper <= self.checkpoint, "every run gets ahead"
        self.checkpoint = result.end_offset
        self._check_against(before)

    def _check_against(self, before: dict[int, Record]) -> None:
        left = {record.offset: record for record in records_of(self.log)}
        for offset, record in left.items():
            assert before[offset] == record, "what is kept is kept as it was"
        last: dict[bytes, int] = {}
        for offset, record in before.items():
            if offset < self.checkpoint and offset not in self.aborted and not self._is_marker(offset):
                last[record.key or b""] = offset
        for offset, record in before.items():
            if offset >= self.checkpoint:
                assert offset in left, "nothing behind the clean part is touched"
            elif offset in self.aborted:
                assert offset not in left, "aborted records go"
            elif not self._is_marker(offset) and last[record.key or b""] > offset:
                assert offset not in left, "an old value goes"

    def _is_marker(self, offset: int) -> bool:
        record = self.written[offset]
        return record.key is not None and record.key not in KEYS

    @rule(clean=st.booleans(), keep_snapshots=st.booleans())
    def restart(self, clean: bool, keep_snapshots: bool) -> None:
        end, watermark = self.log.end_offset, self.log.high_watermark
        self.log.close()
        if not keep_snapshots:
            for name in self.disk.list_directory(self.log.directory):
                if name.endswith(".snapshot"):
                    self.disk.remove(f"{self.log.directory}/{name}")
            clean = False
        self.log = open_log(self.disk, config=COMPACTED, clean=clean, now_ms=self.now_ms, **self.changes)
        assert self.log.end_offset == end
        self.log.advance_high_watermark(watermark)
        for producer, sequence in self.sequences.items():
            known = self.log.producers.get(producer)
            if sequence and not self._expired(producer):
                assert known is not None, "an active producer is not forgotten"
                assert known.last_sequence == sequence - 1

    def _expired(self, producer: int) -> bool:
        return self.log.producers.get(producer) is None and self.now_ms > NOW_MS + 80_000_000

    @invariant()
    def the_newest_value_of_every_key_is_there(self) -> None:
        if not hasattr(self, "log"):
            return
        left = {record.offset: record for record in records_of(self.log)}
        for key, offset in self.newest.items():
            record = left.get(offset)
            if record is None:
                was = self.written[offset]
                assert was.value is None, f"the newest value of {key!r} is lost"
                older = [other for other in left.values() if other.key == key and other.offset < offset]
                assert all(other.offset in self.aborted for other in older), f"{key!r} was deleted and is back"
            else:
                assert record.key == key


CompactedLog.TestCase.settings = settings(stateful_step_count=30)
TestCompactedLog = CompactedLog.TestCase
