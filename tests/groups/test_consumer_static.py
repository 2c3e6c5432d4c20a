"""Static members of a consumer group: known by their instance id, and welcome back."""

from __future__ import annotations

from millstream.protocol.errors import ErrorCode
from tests.groups.consumer_scene import SESSION_MS, ConsumerScene, pairs


def scene_of_two() -> ConsumerScene:
    scene = ConsumerScene({"t": 2}, group_consumer_assignment_interval_ms=0)
    scene.enter("a", "t", instance_id="one")
    scene.enter("b", "t", instance_id="two")
    scene.settle("a", "b")
    return scene


def test_an_instance_id_in_use_is_not_given_away() -> None:
    scene = scene_of_two()
    assert scene.enter("c", "t", instance_id="one").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert scene.beat("c", 3, instance_id="one").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert scene.beat("c", -1, instance_id="one").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert scene.beat("a", 3, instance_id="three").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_left_for_a_while_comes_back_to_its_partitions_without_a_rebalance() -> None:
    scene = scene_of_two()
    had, epoch = scene.owned_by("a"), scene.consumers.epoch
    assert scene.beat("a", -2, instance_id="one").member_epoch == -2
    scene.pass_ms(SESSION_MS // 2)
    scene.beat("b", 3, instance_id="two")
    answer = scene.enter("c", "t", instance_id="one")
    assert answer.error_code == ErrorCode.NONE
    assert pairs({topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}) == had
    assert (scene.consumers.epoch, scene.state_name) == (epoch, "Stable")
    assert "a" not in scene.consumers.members
    # Its former self is out.
    assert scene.beat("a", 3, instance_id="one").error_code == ErrorCode.FENCED_INSTANCE_ID


def test_who_left_for_a_while_and_stays_away_is_removed() -> None:
    scene = scene_of_two()
    scene.beat("a", -2, instance_id="one")
    for _ in range(10):
        scene.pass_ms(SESSION_MS // 10 + 1)
        member = scene.consumers.members["b"]
        scene.beat("b", member.epoch, instance_id="two", owned=pairs(member.assigned))
    assert list(scene.consumers.members) == ["b"]
    assert len(scene.owned_by("b")) == 2


def test_to_leave_for_a_while_takes_an_instance_id() -> None:
    scene = scene_of_two()
    assert scene.beat("a", -2).error_code == ErrorCode.INVALID_REQUEST


def test_a_place_that_waits_survives_a_crash() -> None:
    scene = scene_of_two()
    had = scene.owned_by("a")
    scene.beat("a", -2, instance_id="one")
    scene.crash()
    answer = scene.enter("c", "t", instance_id="one")
    assert pairs({topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions}) == had
