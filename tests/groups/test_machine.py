"""How records and timers find their owners."""

from __future__ import annotations

from millstream.protocol.messages.groups.legacy_offset_commit import LegacyOffsetCommitKey
from millstream.protocol.messages.groups.share_group_metadata import ShareGroupMetadataKey
from tests.groups.offsets_scene import Scene, seen_in
from tests.groups.test_offsets import a_stable_group


def test_records_of_groups_that_are_not_served_are_left_alone() -> None:
    scene = Scene()
    before = seen_in(scene.machine)
    for key in (ShareGroupMetadataKey(group_id="g"), LegacyOffsetCommitKey(group="g", topic="orders", partition=0)):
        scene.machine.apply(key, None, transaction=None, offset=0)
    assert seen_in(scene.machine) == before


def test_a_timer_that_outlived_its_group_does_nothing() -> None:
    scene = Scene()
    decision = scene.machine.on_timer(("classic", "g", "session", "m"), scene.now_ms)
    assert (decision.records, decision.timers) == ((), ())


def test_a_timer_of_another_kind_of_group_does_nothing() -> None:
    scene = Scene()
    a_stable_group(scene)
    decision = scene.machine.on_timer(("consumer", "g", "session", "m"), scene.now_ms)
    assert (decision.records, decision.timers) == ((), ())
    assert scene.machine.groups["g"].type_name == "classic"


def test_every_group_is_listed_once() -> None:
    scene = Scene()
    a_stable_group(scene)
    scene.commit(1, member="m", generation=4)
    scene.commit(1, group="offsets-only")
    scene.txn_commit(1, group="pending-only")
    assert sorted(group.id for group in scene.machine.all_groups()) == ["g", "offsets-only", "pending-only"]


def test_a_group_s_own_settings_go_before_the_broker_s() -> None:
    scene = Scene()
    plain = scene.machine.group_settings("g")
    assert scene.machine.group_settings("h") is plain
