"""Which offsets are forgotten, and when."""

from __future__ import annotations

import pytest

from millstream.groups.group import SimpleGroup
from millstream.protocol.errors import ErrorCode
from tests.groups.offsets_scene import MINUTE_MS, Scene, offsets_in
from tests.groups.test_offsets import a_stable_group

RETENTION = {"offsets.retention.minutes": "10"}
RETENTION_MS = 10 * MINUTE_MS


@pytest.fixture
def scene() -> Scene:
    return Scene(settings=RETENTION)


def test_offsets_of_a_simple_group_age_from_their_commit(scene: Scene) -> None:
    scene.commit(1)
    scene.now_ms += RETENTION_MS - 1
    scene.commit(1, partition=1)
    scene.run_expiry()
    assert len(offsets_in(scene.machine)) == 2
    scene.now_ms += 1
    scene.run_expiry()
    assert list(offsets_in(scene.machine)) == [("g", "orders", 1)]
    assert offsets_in(scene.replayed()) == offsets_in(scene.machine)


def test_a_group_without_offsets_is_gone(scene: Scene) -> None:
    scene.commit(1)
    scene.now_ms += RETENTION_MS
    scene.run_expiry()
    assert scene.machine.group("g") is None
    assert scene.replayed().group("g") is None


def test_a_live_group_keeps_the_offsets_of_what_it_reads(scene: Scene) -> None:  # KAFKA-4682
    a_stable_group(scene)
    scene.commit(1, member="m", generation=4)
    scene.commit(1, topic="payments", member="m", generation=4)
    scene.now_ms += 100 * RETENTION_MS
    scene.run_expiry()
    assert list(offsets_in(scene.machine)) == [("g", "orders", 0)]
    assert scene.machine.group("g") is not None


def test_a_time_of_expiry_of_its_own_goes_before_the_retention(scene: Scene) -> None:
    scene.commit(1, version=2, retention_ms=1_000)
    scene.commit(1, version=2, partition=1, retention_ms=100 * RETENTION_MS)
    scene.now_ms += 1_000
    scene.run_expiry()
    assert list(offsets_in(scene.machine)) == [("g", "orders", 1)]
    scene.now_ms += 2 * RETENTION_MS
    scene.run_expiry()
    assert scene.fetch(partition=1) == (1, ErrorCode.NONE)


def test_an_offset_that_a_transaction_is_about_to_replace_stays(scene: Scene) -> None:
    scene.commit(1)
    scene.txn_commit(5)
    scene.now_ms += 2 * RETENTION_MS
    scene.run_expiry()
    assert scene.fetch() == (1, ErrorCode.NONE)
    scene.end_transaction(commit=False)
    scene.run_expiry()
    assert scene.machine.group("g") is None


def test_many_expired_offsets_go_in_batches_that_fit(scene: Scene) -> None:  # KAFKA-17058
    count = 5_500
    scene = Scene({"orders": count}, RETENTION)
    for partition in range(count):
        scene.commit(1, partition=partition)
    scene.now_ms += RETENTION_MS
    turns = scene.run_expiry()
    assert turns == 6
    assert not offsets_in(scene.machine)
    assert scene.machine.group("g") is None


def test_a_shard_looks_for_expired_offsets_from_the_start_on(scene: Scene) -> None:
    (timer,) = scene.machine.loaded(scene.now_ms)
    assert timer.key == ("offsets", "expiry")


def test_a_simple_group_knows_nobody() -> None:
    group = SimpleGroup("g")
    assert group.is_empty
    assert group.committed("m") == ()
    assert not group.is_subscribed_to("orders")
