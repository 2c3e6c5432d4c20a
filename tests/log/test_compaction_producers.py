"""What compaction does with the batches of idempotent and transactional producers, and with their markers."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.log.log import Origin
from millstream.protocol.errors import OutOfOrderSequence
from millstream.records.building import control_batch, encode_batch
from tests.log.compacting import (
    COMPACTED,
    compact_now,
    compacted_log,
    end_transaction,
    headers_of,
    put,
    values_of,
)
from tests.log.making import FOLDER, NOW_MS, commit, open_log

HOUR_MS = 3_600_000
A_TRANSACTION: dict[str, Any] = {"producer_id": 5, "producer_epoch": 0, "transactional": True}


def test_45_the_last_batch_of_an_active_producer_is_kept_empty() -> None:
    log = compacted_log()
    producer: dict[str, Any] = {"producer_id": 9, "producer_epoch": 0}
    for sequence in range(3):
        put(log, (b"a", b"%d" % sequence), base_sequence=sequence, **producer)
    put(log, (b"a", b"newest"))
    log.roll(NOW_MS)
    compact_now(log)
    assert [(header.base_offset, header.count, header.base_sequence) for header in headers_of(log)] == [
        (2, 0, 2),
        (3, 1, -1),
    ]
    log.close()
    for name in log.disk.list_directory(FOLDER):
        if name.endswith(".snapshot"):
            log.disk.remove(f"{FOLDER}/{name}")
    again = open_log(log.disk, config=COMPACTED, clean=False)
    with pytest.raises(OutOfOrderSequence):
        put(again, (b"a", b"late"), base_sequence=1, **producer)
    assert again.append_as_leader(
        encode_batch([(b"a", b"2", (("h", b"1"),), NOW_MS)], base_sequence=2, **producer), 0, NOW_MS
    ).duplicate


@pytest.mark.parametrize("clean", [True, False])
def test_the_time_of_an_emptied_batch_is_not_the_time_of_a_record(clean: bool) -> None:
    """A time index that named it would send a search to records that are gone; Apache Kafka's reader complains."""
    log = compacted_log()
    put(log, (b"a", b"late"), timestamp=NOW_MS + 5, producer_id=9, producer_epoch=0, base_sequence=0)
    put(log, (b"a", b"newest"), timestamp=NOW_MS + 1)
    log.roll(NOW_MS)
    compact_now(log)
    assert [header.count for header in headers_of(log)] == [0, 1]
    log.close()
    follower = open_log(log.disk, "/logs/follower-0", config=COMPACTED)
    again = open_log(log.disk, config=COMPACTED, clean=clean)
    follower.append_as_follower(again.read(0, 1 << 20, again.end_offset, at_least_one_batch=True) or b"")
    for reader in (again, follower):
        commit(reader)
        found = reader.offset_of_max_timestamp()
        assert found is not None
        assert (found.offset, found.timestamp) == (1, NOW_MS + 1)
        assert reader.segments[0].largest == (NOW_MS + 1, 1)


def test_43_a_transaction_over_many_segments_goes_when_it_was_aborted() -> None:
    log = compacted_log(segment_bytes=200)
    put(log, (b"a", b"good"), (b"b", b"good"))
    for sequence in range(6):
        put(log, (b"a", b"bad"), base_sequence=sequence, **A_TRANSACTION)
        log.roll(NOW_MS)
    end_transaction(log, 5, is_commit=False)
    log.roll(NOW_MS)
    assert len(log.segments) > 5
    compact_now(log)
    assert [pair for _, *pair in values_of(log)][:2] == [[b"a", b"good"], [b"b", b"good"]]
    assert b"bad" not in [value for *_, value in values_of(log)]


def test_the_abort_may_stand_in_a_segment_that_is_not_cleaned() -> None:
    log = compacted_log()
    put(log, (b"a", b"good"))
    put(log, (b"a", b"bad"), base_sequence=0, **A_TRANSACTION)
    log.roll(NOW_MS)
    end_transaction(log, 5, is_commit=False)
    compact_now(log)
    assert [value for *_, value in values_of(log)][:1] == [b"good"]


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_stays_until_its_transaction_is_gone_and_then_for_delete_retention(is_commit: bool) -> None:
    log = compacted_log()
    put(log, (b"a", b"1"), base_sequence=0, **A_TRANSACTION)
    marker = end_transaction(log, 5, is_commit=is_commit)
    put(log, (b"a", b"2"), base_sequence=1, **A_TRANSACTION)
    end_transaction(log, 5, is_commit=True)
    put(log, (b"z", b"last"))
    log.roll(NOW_MS)

    def marker_is_there() -> bool:
        return marker in [offset for offset, *_ in values_of(log)]

    compact_now(log)
    assert marker_is_there(), "this run has only removed the records"
    later = NOW_MS + HOUR_MS
    compact_now(log, now_ms=later)
    assert marker_is_there(), "now its time counts"
    compact_now(log, now_ms=later + COMPACTED.delete_retention_ms - 1)
    assert marker_is_there()
    compact_now(log, now_ms=later + COMPACTED.delete_retention_ms)
    assert not marker_is_there()
    assert (2, b"a", b"2") in values_of(log)


def test_42_a_user_key_that_looks_like_a_markers_key_removes_no_marker() -> None:
    log = compacted_log()
    put(log, (b"a", b"1"), base_sequence=0, **A_TRANSACTION)
    marker = end_transaction(log, 5, is_commit=True)
    put(log, (b"\x00\x00\x00\x01", b"a user's value"))
    log.roll(NOW_MS)
    compact_now(log)
    assert [offset for offset, *_ in values_of(log)] == [0, marker, 2]


def test_aborted_transactions_are_found_in_the_new_index() -> None:
    log = compacted_log()
    put(log, (b"a", b"good"))
    put(log, (b"b", b"bad"), base_sequence=0, **A_TRANSACTION)
    end_transaction(log, 5, is_commit=False)
    log.roll(NOW_MS)
    compact_now(log)
    assert log.aborted_transactions(0, log.end_offset) == [(5, 1)]
    log.close()
    assert open_log(log.disk, config=COMPACTED).aborted_transactions(0, 3) == [(5, 1)]


def test_other_control_records_stay() -> None:
    log = compacted_log()
    log.append_as_leader(control_batch(2, b"leader", NOW_MS), 0, NOW_MS, origin=Origin.RAFT_LEADER)
    put(log, (b"a", b"1"))
    log.roll(NOW_MS)
    for hours in range(3):
        compact_now(log, now_ms=NOW_MS + hours * HOUR_MS)
    assert len(values_of(log)) == 2
