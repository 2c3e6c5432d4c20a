"""Members that come together are assigned together (gathering.py)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from millstream.groups.consumer.gathering import GATHERED_MS_MAX
from millstream.protocol.errors import ErrorCode, NotEnoughReplicas
from tests.groups.classic_scene import GROUP
from tests.groups.consumer_scene import ConsumerScene, pairs

if TYPE_CHECKING:
    from tests.groups.classic_scene import Pending


def gathering_scene(partitions: int = 100, **settings: Any) -> ConsumerScene:
    told = {"group_coordinator_append_linger_ms": -1, "group_consumer_assignment_interval_ms": 0}
    return ConsumerScene({"t": partitions}, **told | settings)


def owned(pending: Pending) -> frozenset[tuple[str, int]]:
    assert pending.error is ErrorCode.NONE, pending
    return pairs({topic.topic_id: topic.partitions for topic in pending.answer.assignment.topic_partitions})


def targets(scene: ConsumerScene) -> int:
    """How many target assignments the log has."""
    return sum(key[:2] == b"\0\x06" for key, _ in scene.log)


def test_a_hundred_members_that_come_at_once_get_their_own_from_one_assignment() -> None:
    scene = gathering_scene()
    coming = [scene.begin_to_enter(f"m{number}", "t") for number in range(100)]
    assert all(pending.answer is None for pending in coming)
    scene.pass_ms(GATHERED_MS_MAX)
    assert targets(scene) == 1
    assert {pending.answer.member_epoch for pending in coming} == {scene.consumers.epoch}
    assert sorted(sorted(owned(pending)) for pending in coming) == [[("t", number)] for number in range(100)]
    assert scene.state_name == "Stable"


def test_who_comes_alone_waits_a_millisecond() -> None:
    scene = gathering_scene()
    pending = scene.begin_to_enter("a", "t")
    scene.pass_ms(1)
    assert len(owned(pending)) == 100


def test_a_stream_of_newcomers_is_cut() -> None:
    scene = gathering_scene()
    first = scene.begin_to_enter("m0", "t")
    for number in range(1, GATHERED_MS_MAX):
        assert first.answer is None
        scene.begin_to_enter(f"m{number}", "t")
        scene.pass_ms(1)
    scene.begin_to_enter("late", "t")
    scene.pass_ms(1)
    assert first.error is ErrorCode.NONE


def test_a_time_to_gather_can_be_set() -> None:
    scene = gathering_scene(group_coordinator_append_linger_ms=5)
    coming = [scene.begin_to_enter("a", "t")]
    scene.pass_ms(4)
    coming.append(scene.begin_to_enter("b", "t"))
    assert coming[0].answer is None
    scene.pass_ms(1)
    assert [len(owned(pending)) for pending in coming] == [50, 50]


def test_members_that_have_nothing_new_to_say_do_not_wait() -> None:
    scene = gathering_scene()
    epoch = scene.enter("a", "t").member_epoch
    coming = scene.begin_to_enter("b", "t")
    answer = scene.begin_to_beat("a", epoch).answer
    assert (answer.member_epoch, answer.assignment) == (epoch, None)
    assert coming.answer is None
    scene.pass_ms(1)
    assert coming.error is ErrorCode.NONE


def test_a_member_that_changes_its_topics_waits_too() -> None:
    scene = gathering_scene(partitions=2)
    scene.set_topics(t=2, u=2)
    epoch = scene.enter("a", "t").member_epoch
    pending = scene.begin_to_beat("a", epoch, subscribed_topic_names=["t", "u"])
    assert pending.answer is None
    scene.pass_ms(1)
    assert owned(pending) == {("t", 0), ("t", 1), ("u", 0), ("u", 1)}


def test_who_left_while_it_waited_is_told_that_it_is_no_member() -> None:
    scene = gathering_scene()
    coming = [scene.begin_to_enter("a", "t"), scene.begin_to_enter("b", "t")]
    scene.begin_to_beat("a", -1)
    scene.pass_ms(GATHERED_MS_MAX)
    assert coming[0].error is ErrorCode.UNKNOWN_MEMBER_ID
    assert len(owned(coming[1])) == 100


def test_a_group_that_is_gone_refuses_whoever_waits_for_it() -> None:
    scene = gathering_scene()
    pending = scene.begin_to_enter("a", "t")
    del scene.machine.groups[GROUP]
    scene.pass_ms(1)
    assert pending.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert not scene.machine.gathering


@pytest.mark.parametrize("failing", ["the first write", "the second write"])
def test_what_cannot_be_written_is_refused_and_can_be_tried_again(failing: str) -> None:
    scene = gathering_scene()
    if failing == "the first write":
        scene.fail_writes = NotEnoughReplicas
    pending = scene.begin_to_enter("a", "t")
    scene.fail_writes = NotEnoughReplicas
    scene.pass_ms(GATHERED_MS_MAX)
    assert pending.error is not None
    assert pending.error is not ErrorCode.NONE
    assert not scene.machine.gathering
    scene.fail_writes = None
    assert scene.enter("a", "t").error_code == ErrorCode.NONE
    assert scene.state_name == "Stable"


def test_after_a_crash_members_come_again() -> None:
    scene = gathering_scene()
    scene.begin_to_enter("a", "t")
    scene.crash()
    assert scene.enter("a", "t").error_code == ErrorCode.NONE
    assert scene.state_name == "Stable"
