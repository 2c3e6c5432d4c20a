"""Many members, many groups: the work for each stays small."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import tests.groups.consumer_scene as scenes
from millstream.protocol.errors import ErrorCode
from tests.groups.consumer_scene import ConsumerScene, pairs, stored_state

if TYPE_CHECKING:
    import pytest


def test_a_thousand_members_join_and_settle() -> None:
    scene = ConsumerScene({"t": 1_500})
    names = [f"member-{number}" for number in range(1_000)]
    start = time.thread_time()
    for name in names:
        scene.now_ms += 1
        assert scene.enter(name, "t").error_code == ErrorCode.NONE
    rounds = 0
    while scene.state_name != "Stable":
        rounds += 1
        assert rounds < 6
        scene.now_ms += 1_000
        for name in names:
            member = scene.consumers.members[name]
            scene.beat(name, member.epoch, owned=pairs(member.assigned))
    # A second or so of this thread's own work, however busy the machine is.
    assert time.thread_time() - start < 60
    assert {len(scene.owned_by(name)) for name in names} == {1, 2}
    assert stored_state(scene.replayed()) == stored_state(scene.machine)


def test_ten_thousand_groups_live_in_one_shard(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = ConsumerScene({"t": 1})
    start = time.thread_time()
    for number in range(10_000):
        monkeypatch.setattr(scenes, "GROUP", f"group-{number}")
        assert scene.enter("a", "t").error_code == ErrorCode.NONE
    scene.crash()
    assert len(scene.machine.groups) == 10_000
    assert all(group.state_name(0) == "Stable" for group in scene.machine.groups.values())
    assert time.thread_time() - start < 120


def test_metadata_of_a_megabyte_is_kept() -> None:
    scene = ConsumerScene({"t": 1})
    topics = [f"{number}".rjust(32_000, "x") for number in range(40)]
    assert scene.enter("a", "t", *topics).error_code == ErrorCode.NONE
    scene.crash()
    assert scene.consumers.members["a"].topics == {"t", *topics}
