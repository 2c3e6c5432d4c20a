"""Compaction against a naive model: the newest value of a key is never lost, and old ones do go.

A seed gives a long random story of appends, transactions, rolls, pauses, compactions and restarts. The model is three
dictionaries; after every step the log is compared with it.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from millstream.records.building import encode_batch
from tests.log.compacting import COMPACTED, compact_now, end_transaction, plan_for
from tests.log.making import NOW_MS, commit, lossy_disk, open_log, records_of

if TYPE_CHECKING:
    from millstream.records.batch import Record

KEYS = [b"a", b"b", b"c", b"", b"the key of one that is long", b"the key of another that is long", b"rare", b"rarer"]
TRANSACTIONAL = (7, 8)
IDEMPOTENT = (1, 2)
STEPS = 120


class Story:
    """A log, what was written to it, and what must be left of it."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = lossy_disk()
        self.changes: dict[str, Any] = {"segment_bytes": self.random.choice([250, 400, 1_500])}
        self.log = open_log(self.disk, config=COMPACTED, **self.changes)
        self.now_ms = NOW_MS
        self.checkpoint = 0
        self.written: dict[int, Record] = {}
        self.newest: dict[bytes, int] = {}
        self.markers: dict[int, None] = {}
        self.aborted: dict[int, None] = {}
        self.open: dict[int, list[tuple[bytes, int]]] = {}
        self.sequences: dict[int, int] = {}
        self.did: list[str] = []

    def tell(self) -> None:
        steps = [self.append] * 9 + [self.end] * 2 + [self.roll] * 2 + [self.wait] + [self.compact] * 3 + [self.restart]
        for _ in range(STEPS):
            step = self.random.choice(steps)
            self.did.append(step.__name__)
            step()
            self.check()

    # What happens

    def append(self) -> None:
        producer = self.random.choice([None, None, *IDEMPOTENT, *TRANSACTIONAL, *TRANSACTIONAL])
        few = self.random.choice([KEYS[:3], KEYS])
        pairs = [
            (self.random.choice(few), self.random.choice([None, b"v%d" % self.random.randrange(99), b""]))
            for _ in range(self.random.randrange(1, 5))
        ]
        fields: dict[str, Any] = {"codec": self.random.choice([0, 0, 0, 2, 4])}
        if producer is not None:
            sequence = self.sequences.get(producer, 0)
            self.sequences[producer] = sequence + len(pairs)
            fields |= {"producer_id": producer, "producer_epoch": 0, "base_sequence": sequence}
            fields["transactional"] = producer in TRANSACTIONAL
        base = self._write(encode_batch([(key, value, (), self.now_ms) for key, value in pairs], **fields))
        for delta, (key, _) in enumerate(pairs):
            if producer in TRANSACTIONAL:
                self.open.setdefault(producer, []).append((key, base + delta))
            else:
                self.newest[key] = max(self.newest.get(key, -1), base + delta)

    def _write(self, batch: bytearray) -> int:
        base = self.log.append_as_leader(batch, 0, self.now_ms).base_offset
        commit(self.log)
        return base

    def end(self) -> None:
        if not self.open:
            return
        producer = self.random.choice(sorted(self.open))
        is_commit = self.random.random() < 0.5
        self.markers[end_transaction(self.log, producer, is_commit=is_commit, timestamp=self.now_ms)] = None
        for key, offset in self.open.pop(producer):
            if is_commit:
                self.newest[key] = max(self.newest.get(key, -1), offset)
            else:
                self.aborted[offset] = None

    def roll(self) -> None:
        self.log.roll(self.now_ms)

    def wait(self) -> None:
        self.now_ms += self.random.choice([1, 4_000, 20_000])

    def compact(self) -> None:
        before = {record.offset: record for record in records_of(self.log)}
        upper = plan_for(self.log, self.checkpoint, now_ms=self.now_ms).upper_bound_offset
        keys_max = self.random.choice([1, 3, 1_000, 1_000])
        result = compact_now(self.log, self.checkpoint, now_ms=self.now_ms, keys_max=keys_max)
        assert result.damage is None
        assert result.opaque_batches == 0
        assert self.checkpoint <= result.end_offset <= max(upper, self.checkpoint)
        assert result.end_offset > self.checkpoint or upper <= self.checkpoint, "every run gets ahead"
        self.checkpoint = result.end_offset
        self._check_what_went(before)

    def _check_what_went(self, before: dict[int, Record]) -> None:
        left = {record.offset: record for record in records_of(self.log)}
        assert all(before[offset] == record for offset, record in left.items()), "what is kept is kept as it was"
        last: dict[bytes | None, int] = {}
        for offset, record in before.items():
            if offset < self.checkpoint and offset not in self.aborted and offset not in self.markers:
                last[record.key] = offset
        for offset, record in before.items():
            if offset >= self.checkpoint:
                decided = offset in self.aborted or offset in self.markers
                assert offset in left or decided, "nothing behind the clean part is touched"
            elif offset in self.aborted:
                assert offset not in left, "aborted records go"
            elif offset not in self.markers and last[record.key] > offset:
                assert offset not in left, "an old value goes"

    def restart(self) -> None:
        end, watermark = self.log.end_offset, self.log.high_watermark
        self.log.close()
        clean = self.random.random() < 0.5
        if not clean:
            for name in self.disk.list_directory(self.log.directory):
                if name.endswith(".snapshot"):
                    self.disk.remove(f"{self.log.directory}/{name}")
        self.log = open_log(self.disk, config=COMPACTED, clean=clean, now_ms=self.now_ms, **self.changes)
        self.log.advance_high_watermark(watermark)
        assert self.log.end_offset == end
        for producer, sequence in self.sequences.items():
            known = self.log.producers.get(producer)
            assert known is not None, "an active producer is not forgotten"
            assert known.last_sequence == sequence - 1
            assert (known.txn_first_offset >= 0) == (producer in self.open), "an open transaction stays open"

    # What must hold

    def check(self) -> None:
        left = {}
        for record in records_of(self.log):
            left[record.offset] = record
            self.written.setdefault(record.offset, record)
        for key, offset in self.newest.items():
            if offset in left:
                assert left[offset].key == key
                continue
            assert self.written[offset].value is None, f"the newest value of {key!r} is lost"
            older = [record for record in left.values() if record.key == key and record.offset < offset]
            assert all(record.offset in self.aborted for record in older), f"{key!r} was deleted and is back"
        for pairs in self.open.values():
            assert all(offset in left for _, offset in pairs), "an undecided record is gone"
        self._check_aborted(left)

    def _check_aborted(self, left: dict[int, Record]) -> None:
        """A reader of committed records is told of every aborted record that is still there."""
        told = self.log.aborted_transactions(self.log.start_offset, self.log.end_offset)
        for offset in self.aborted:
            if offset in left:
                assert any(first <= offset for _, first in told), "an aborted record can be read"


@pytest.mark.parametrize("seed", range(20))
def test_the_newest_value_of_every_key_survives(seed: int) -> None:
    story = Story(seed)
    story.tell()
    assert "compact" in story.did


@settings(max_examples=10, phases=[Phase.generate])
@given(st.integers(1_000, 2**32))
def test_the_newest_value_survives_any_story(seed: int) -> None:
    Story(seed).tell()
