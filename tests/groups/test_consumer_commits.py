"""Who may commit and fetch offsets in a consumer group, and which groups may go."""

from __future__ import annotations

import pytest

from millstream.protocol.errors import (
    IllegalGeneration,
    NonEmptyGroup,
    StaleMemberEpoch,
    UnknownMember,
    UnsupportedVersion,
)
from tests.groups.consumer_scene import ConsumerScene, topic_id


@pytest.fixture
def scene() -> ConsumerScene:
    """`a` kept a partition over an epoch, and got none since; `b` has the other since epoch 3."""
    made = ConsumerScene({"t": 2}, group_consumer_assignment_interval_ms=0)
    made.enter("a", "t")
    made.enter("b", "t")
    made.settle("a", "b")
    return made


def commit(scene: ConsumerScene, member_id: str, epoch: int, partition: int | None = None, **how: object) -> None:
    told = {"transactional": False, "version": 9} | how
    check = scene.consumers.check_commit(member_id, None, epoch, **told)  # type: ignore[arg-type]
    if partition is not None and check is not None:
        check("t", topic_id("t"), partition)


def test_a_member_commits_in_its_epoch(scene: ConsumerScene) -> None:
    commit(scene, "a", 3, 0)


def test_a_commit_of_the_past_is_right_for_what_the_member_has_had_since(scene: ConsumerScene) -> None:
    ((_, kept),) = scene.owned_by("a")
    commit(scene, "a", 2, kept)
    with pytest.raises(StaleMemberEpoch):
        commit(scene, "a", 2, 1 - kept)
    with pytest.raises(StaleMemberEpoch):
        commit(scene, "a", 1, kept)
    with pytest.raises(StaleMemberEpoch):
        commit(scene, "b", 2, 1 - kept)


def test_the_future_and_strangers_commit_nothing(scene: ConsumerScene) -> None:
    with pytest.raises(StaleMemberEpoch):
        commit(scene, "a", 4)
    with pytest.raises(StaleMemberEpoch):
        commit(scene, "a", 2**31 - 1)
    with pytest.raises(UnknownMember):
        commit(scene, "x", 3)
    with pytest.raises(UnknownMember):
        commit(scene, "", -1)


def test_old_versions_don_t_know_epochs(scene: ConsumerScene) -> None:
    with pytest.raises(UnsupportedVersion):
        commit(scene, "a", 3, version=8)
    commit(scene, "a", 3, version=5, transactional=True)


def test_a_producer_without_a_group_s_metadata_commits_in_a_transaction(scene: ConsumerScene) -> None:
    commit(scene, "", -1, transactional=True)


def test_anybody_commits_for_an_empty_group(scene: ConsumerScene) -> None:
    scene.beat("a", -1)
    scene.beat("b", -1)
    commit(scene, "", -1)
    with pytest.raises(UnknownMember):
        commit(scene, "a", 3)


def test_a_classic_member_hears_of_generations() -> None:
    scene = ConsumerScene({"t": 2}, group_consumer_assignment_interval_ms=0)
    scene.enter("a", "t")
    old = scene.join_new(protocols=scene.subscription("t")).answer
    commit(scene, old.member_id, old.generation_id, version=5)
    with pytest.raises(IllegalGeneration):
        commit(scene, old.member_id, old.generation_id + 1)


def test_who_fetches_as_a_member_is_one(scene: ConsumerScene) -> None:
    scene.consumers.check_fetch(None, -1)
    scene.consumers.check_fetch("a", 3)
    for epoch in (2, 4):
        with pytest.raises(StaleMemberEpoch):
            scene.consumers.check_fetch("a", epoch)
    with pytest.raises(UnknownMember):
        scene.consumers.check_fetch("x", 3)


def test_offsets_of_topics_that_are_read_stay(scene: ConsumerScene) -> None:
    assert scene.consumers.is_subscribed_to("t")
    assert not scene.consumers.is_subscribed_to("u")


def test_a_group_with_members_is_not_deleted_and_one_without_leaves_nothing(scene: ConsumerScene) -> None:
    with pytest.raises(NonEmptyGroup):
        scene.consumers.check_delete()
    scene.beat("a", -1)
    scene.beat("b", -1)
    scene.consumers.check_delete()
    for record in scene.consumers.tombstones():
        scene.machine.apply(record.key, record.value, transaction=None, offset=0)
    assert scene.machine.groups == {}
