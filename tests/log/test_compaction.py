"""What compaction keeps and what it drops, case by case; the numbers are the bugs of facts/reliability.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.log import compaction
from millstream.log.compaction_plan import PlannedSegment
from millstream.log.compaction_rewrite import compact, group_segments
from millstream.records.batch import read_header
from millstream.records.building import assemble, encode_batch
from tests.log.compacting import (
    COMPACTED,
    compact_now,
    compacted_log,
    end_transaction,
    headers_of,
    plan_for,
    put,
    values_of,
)
from tests.log.making import FOLDER, NOW_MS, commit, open_log, records_of

if TYPE_CHECKING:
    from millstream.log.compaction_plan import Plan

HOUR_MS = 3_600_000
A_TRANSACTION: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "transactional": True}


# Keys


def test_only_the_newest_value_of_a_key_stays_and_keeps_its_offset() -> None:
    log = compacted_log()
    put(log, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    put(log, (b"b", b"2"), (b"c", b"1"))
    log.roll(NOW_MS)
    assert compact_now(log).end_offset == 5
    assert values_of(log) == [(2, b"a", b"2"), (3, b"b", b"2"), (4, b"c", b"1")]


def test_null_and_empty_keys_are_not_the_same_and_records_without_a_key_go() -> None:
    log = compacted_log(compact=False)
    put(log, (None, b"no key"), (b"", b"1"), (b"", b"2"))
    log.roll(NOW_MS)
    compact_now(log)
    assert values_of(log) == [(2, b"", b"2")]


def test_the_active_segment_is_not_touched() -> None:
    log = compacted_log()
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    assert compact_now(log).cleaned == []
    log.roll(NOW_MS)
    put(log, (b"a", b"3"))
    compact_now(log)
    assert values_of(log) == [(1, b"a", b"2"), (2, b"a", b"3")]


def test_44_nothing_above_the_high_watermark_counts() -> None:
    log = compacted_log()
    put(log, (b"a", b"1"))
    log.roll(NOW_MS)
    log.append_as_leader(encode_batch([(b"a", b"2", (), NOW_MS)]), 0, NOW_MS)
    log.append_as_leader(encode_batch([(b"b", b"1", (), NOW_MS)]), 0, NOW_MS)
    log.roll(NOW_MS)
    log.advance_high_watermark(2)
    assert compact_now(log).end_offset == 1
    assert values_of(log) == [(0, b"a", b"1"), (1, b"a", b"2"), (2, b"b", b"1")]
    commit(log)
    compact_now(log, 1)
    assert values_of(log) == [(1, b"a", b"2"), (2, b"b", b"1")]


def test_nothing_of_an_open_transaction_counts() -> None:
    log = compacted_log()
    put(log, (b"a", b"1"))
    log.roll(NOW_MS)
    put(log, (b"a", b"undecided"), base_sequence=0, **A_TRANSACTION)
    log.roll(NOW_MS)
    compact_now(log)
    assert values_of(log) == [(0, b"a", b"1"), (1, b"a", b"undecided")]


@pytest.mark.parametrize("keys_max", [1, 2, 5])
def test_memory_is_bounded_and_every_run_gets_ahead(keys_max: int) -> None:
    log = compacted_log()
    for number in range(12):
        put(log, (b"%d" % (number % 6), b"%d" % number))
    log.roll(NOW_MS)
    checkpoint, runs = 0, 0
    while checkpoint < 12:
        after = compact_now(log, checkpoint, keys_max=keys_max).end_offset
        assert after > checkpoint
        checkpoint, runs = after, runs + 1
    assert runs > 1
    assert [value for _, _, value in values_of(log)] == [b"%d" % number for number in range(6, 12)]


def test_46_a_log_full_of_gaps_is_clean_up_to_its_end() -> None:
    log = compacted_log()
    for number in range(6):
        put(log, (b"a", b"%d" % number))
        log.roll(NOW_MS)
    checkpoint = compact_now(log).end_offset
    assert checkpoint == 6
    assert compaction.dirtiness(log, checkpoint, NOW_MS).dirty_bytes == 0


def test_48_the_last_offset_survives_although_its_record_went() -> None:
    log = compacted_log()
    put(log, (b"a", b"1"))
    put(log, (b"k", b"1"), base_sequence=0, **A_TRANSACTION)
    end_transaction(log, 5, is_commit=False)
    put(log, (b"k", b"2"), base_sequence=1, **A_TRANSACTION)
    end_transaction(log, 5, is_commit=False)
    log.roll(NOW_MS)
    for days in range(1, 4):
        compact_now(log, now_ms=NOW_MS + days * 24 * HOUR_MS)
    assert headers_of(log)[-1].next_offset == log.end_offset
    log.close()
    again = open_log(log.disk, config=COMPACTED)
    assert again.active.size == 0
    assert again.end_offset == 5
    assert values_of(again)[0] == (0, b"a", b"1")
    assert again.read(3, 1000, 5, at_least_one_batch=True) is not None


# Tombstones


def test_a_tombstone_stays_for_delete_retention_after_it_was_first_cleaned() -> None:
    log = compacted_log()
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None), (b"b", b"2"))
    log.roll(NOW_MS)
    first_cleaned = NOW_MS + HOUR_MS
    compact_now(log, now_ms=first_cleaned)
    assert values_of(log) == [(2, b"a", None), (3, b"b", b"2")]
    (header,) = headers_of(log)
    assert header.delete_horizon_ms == first_cleaned + COMPACTED.delete_retention_ms
    assert [record.timestamp for record in records_of(log)] == [NOW_MS, NOW_MS]
    compact_now(log, now_ms=first_cleaned + COMPACTED.delete_retention_ms - 1)
    assert values_of(log) == [(2, b"a", None), (3, b"b", b"2")]
    compact_now(log, now_ms=first_cleaned + COMPACTED.delete_retention_ms)
    assert values_of(log) == [(3, b"b", b"2")]


def test_47_a_log_of_nothing_but_tombstones_ends_up_empty_and_keeps_its_end() -> None:
    log = compacted_log()
    for key in (b"a", b"b", b"c"):
        put(log, (key, None))
    log.roll(NOW_MS)
    compact_now(log)
    assert len(values_of(log)) == 3
    compact_now(log, now_ms=NOW_MS + HOUR_MS)
    assert values_of(log) == []
    assert [(header.next_offset, header.count) for header in headers_of(log)] == [(3, 0)]
    assert log.end_offset == 3
    log.close()
    assert open_log(log.disk, config=COMPACTED, clean=False).end_offset == 3


def test_an_empty_value_is_no_tombstone() -> None:
    log = compacted_log()
    put(log, (b"a", b""))
    log.roll(NOW_MS)
    compact_now(log)
    compact_now(log, now_ms=NOW_MS + HOUR_MS)
    assert values_of(log) == [(0, b"a", b"")]


# When


def test_records_younger_than_the_lag_stay() -> None:
    log = compacted_log(min_compaction_lag_ms=HOUR_MS)
    put(log, (b"a", b"1"), timestamp=NOW_MS - 2 * HOUR_MS)
    put(log, (b"a", b"2"), timestamp=NOW_MS - 2 * HOUR_MS)
    log.roll(NOW_MS)
    put(log, (b"a", b"3"), timestamp=NOW_MS - HOUR_MS // 2)
    log.roll(NOW_MS)
    compact_now(log)
    assert values_of(log) == [(1, b"a", b"2"), (2, b"a", b"3")]
    compact_now(log, now_ms=NOW_MS + HOUR_MS)
    assert values_of(log) == [(2, b"a", b"3")]


def test_a_log_is_due_by_its_dirty_share() -> None:
    log = compacted_log(min_cleanable_dirty_ratio=0.5)
    put(log, (b"a", b"x" * 100))
    log.roll(NOW_MS)
    put(log, (b"b", b"x" * 100))
    log.roll(NOW_MS)
    put(log, (b"c", b"x" * 100))
    log.roll(NOW_MS)
    for checkpoint, ratio, due in ((None, 1.0, True), (1, 2 / 3, True), (2, 1 / 3, False), (3, 0.0, False)):
        dirty = compaction.dirtiness(log, checkpoint, NOW_MS)
        assert dirty.ratio == pytest.approx(ratio)
        assert compaction.is_due(log, dirty) is due


def test_a_log_is_due_when_a_dirty_record_is_older_than_the_largest_lag() -> None:
    log = compacted_log(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=HOUR_MS)
    put(log, (b"a", b"1"))
    log.roll(NOW_MS)
    assert not compaction.is_due(log, compaction.dirtiness(log, None, NOW_MS + HOUR_MS))
    assert compaction.is_due(log, compaction.dirtiness(log, None, NOW_MS + HOUR_MS + 1))


def test_a_checkpoint_beyond_the_end_or_before_the_start_is_not_believed() -> None:
    log = compacted_log()
    put(log, (b"a", b"1"), (b"b", b"1"))
    log.roll(NOW_MS)
    assert compaction.dirtiness(log, 99, NOW_MS).first_dirty_offset == 0
    log.advance_start_offset(1)
    assert compaction.dirtiness(log, 0, NOW_MS).first_dirty_offset == 1


# Segments


def test_small_neighbours_become_one_segment() -> None:
    log = compacted_log(segment_bytes=2_000)
    for number in range(20):
        put(log, (b"%d" % number, b"1"))
        log.roll(NOW_MS)
    before = values_of(log)
    compact_now(log)
    assert len(log.segments) < 6
    assert values_of(log) == before
    assert all(segment.size <= 2_000 for segment in log.segments)
    for offset in range(20):
        read = log.read(offset, 1, log.end_offset, at_least_one_batch=True)
        assert read is not None
        assert read_header(read).base_offset == offset
        assert log.offset_for_timestamp(NOW_MS) is not None


def test_25_a_group_never_spans_more_offsets_than_an_index_can_tell() -> None:
    plan = plan_for(compacted_log())
    far = 2**31
    segments = [
        PlannedSegment(0, 10, 100, 0),
        PlannedSegment(100, 10, far, 0),
        PlannedSegment(far, 10, far + 1, 0),
        PlannedSegment(far + 1, 10, far + 2, 0),
    ]
    made = group_segments(type(plan)(**{**_fields(plan), "segments": segments}), far + 2)
    assert [[segment.base_offset for segment in group] for group in made] == [[0, 100], [far, far + 1]]


def _fields(plan: Plan) -> dict[str, Any]:
    return {name: getattr(plan, name) for name in plan.__struct_fields__}


def test_snapshots_of_segments_that_are_gone_go_too() -> None:
    log = compacted_log(segment_bytes=5_000)
    for number in range(5):
        put(log, (b"a", b"%d" % number), producer_id=1, producer_epoch=0, base_sequence=number)
        log.roll(NOW_MS)
    compact_now(log)
    assert log.snapshots == [5]
    assert [name for name in log.disk.list_directory(FOLDER) if name.endswith(".snapshot")] == [f"{5:020d}.snapshot"]


# Batches that lie, and damage


def lying_batch(inside: bytes, count: int = 1) -> bytearray:
    honest = encode_batch([(b"a", b"1", (), NOW_MS)] * count)
    return assemble(read_header(honest), inside)


@pytest.mark.parametrize(
    "inside",
    [
        b"",
        b"\xff" * 30,
        bytes(encode_batch([(b"a", b"1", (), NOW_MS)] * 3)[61:]),
        b"\x12\x00\x00\xc8\x01\x02a\x02b\x00",
    ],
    ids=["nothing", "varints without end", "more records than counted", "an offset far away"],
)
def test_a_batch_that_lies_is_kept_as_it_is_and_loses_nothing(inside: bytes) -> None:
    log = compacted_log(compact=False, validate_records=False)
    put(log, (b"a", b"1"), (b"b", b"1"))
    lie = lying_batch(inside)
    log.append_as_leader(lie, 0, NOW_MS)
    put(log, (b"a", b"2"), (b"b", None))
    log.roll(NOW_MS)
    result = compact_now(log)
    assert result.opaque_batches == 1
    assert [header.count for header in headers_of(log)] == [1, 2]
    assert headers_of(log)[0].size == len(lie)
    for hours in range(1, 4):
        compact_now(log, now_ms=NOW_MS + hours * HOUR_MS)
    assert headers_of(log)[-1].count == 2, "a tombstone behind it may hide an old value, and stays"


@pytest.mark.parametrize("at", [8, 16, 17, 40, -1])
def test_a_damaged_segment_ends_the_run_and_nothing_has_happened(at: int) -> None:
    log = compacted_log()
    put(log, (b"a", b"1"))
    log.roll(NOW_MS)
    put(log, (b"a", b"2"))
    log.roll(NOW_MS)
    segment = log.segments[0]
    content = bytearray(log.disk.read_file(segment.path))
    content[at] ^= 0x7F
    log.disk.replace_file(segment.path, bytes(content))
    segment.close_file()
    result = compact(log.disk, plan_for(log))
    assert result.damage is not None
    assert result.cleaned == []
    assert log.disk.read_file(segment.path) == content
