"""Partitions go from one member to another: the new owner gets one when the former has let go of it, not before."""

from __future__ import annotations

from typing import Any

from millstream.groups.consumer.member import MemberState
from millstream.protocol.errors import ErrorCode, NotEnoughReplicas
from tests.groups.consumer_scene import ConsumerScene, Owned, pairs


def told(answer: Any) -> Owned:
    return pairs({topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions})


def two_members(**settings: str | int) -> ConsumerScene:
    """`a` owns all three partitions and has to let go of one for `b`."""
    scene = ConsumerScene({"t": 3}, group_consumer_assignment_interval_ms=0, **settings)
    scene.enter("a", "t")
    scene.enter("b", "t")
    return scene


def test_the_newcomer_waits_in_the_new_epoch_until_the_owner_has_let_go() -> None:
    scene = two_members()
    newcomer = scene.consumers.members["b"]
    assert (newcomer.epoch, newcomer.state, newcomer.assigned) == (3, MemberState.UNRELEASED_PARTITIONS, {})
    keeps = told(scene.beat("a", 2))
    owner = scene.consumers.members["a"]
    assert (owner.epoch, owner.state, len(keeps)) == (2, MemberState.UNREVOKED_PARTITIONS, 2)
    # It still reads all three, and says so: nothing moves.
    everything = {("t", index) for index in range(3)}
    assert scene.beat("a", 2, owned=everything).member_epoch == 2
    assert scene.beat("b", 3, owned=()).assignment is None
    # Now it has let go.
    assert scene.beat("a", 2, owned=keeps).member_epoch == 3
    assert told(scene.beat("b", 3, owned=())) == everything - keeps
    assert scene.state_name == "Stable"


def test_a_member_that_never_lets_go_is_removed_after_its_rebalance_timeout() -> None:
    scene = two_members()
    scene.beat("a", 2)
    everything = [("t", index) for index in range(3)]
    for _ in range(12):
        scene.pass_ms(5_000)
        scene.beat("a", 2, owned=everything)
        scene.beat("b", scene.consumers.members["b"].epoch, owned=pairs(scene.consumers.members["b"].assigned))
    assert list(scene.consumers.members) == ["b"]
    scene.settle("b")
    assert scene.owned_by("b") == set(everything)


def test_a_member_that_let_go_in_time_is_not_removed() -> None:
    scene = two_members()
    keeps = told(scene.beat("a", 2))
    scene.pass_ms(30_000)
    scene.beat("b", 3, owned=())
    scene.beat("a", 2, owned=keeps)
    scene.pass_ms(31_000)
    assert set(scene.consumers.members) == {"a", "b"}


def test_the_time_to_let_go_starts_anew_after_a_crash() -> None:
    scene = two_members()
    scene.beat("a", 2)
    scene.crash()
    assert scene.consumers.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    for _ in range(13):
        scene.pass_ms(5_000)
        if "a" in scene.consumers.members:
            scene.beat("a", 2, owned=[("t", index) for index in range(3)])
        scene.beat("b", scene.consumers.members["b"].epoch, owned=pairs(scene.consumers.members["b"].assigned))
    assert list(scene.consumers.members) == ["b"]


def test_a_member_that_leaves_frees_its_partitions_at_once() -> None:
    scene = two_members()
    scene.beat("a", -1)
    assert len(told(scene.beat("b", 3, owned=()))) == 3


def test_topics_that_a_member_gives_up_are_taken_from_it_at_once() -> None:
    scene = ConsumerScene({"t": 1, "u": 1})
    epoch = scene.enter("a", "t", "u").member_epoch
    # Too soon for a new target.
    answer = scene.beat("a", epoch, subscribed_topic_names=["u"], owned=[("t", 0), ("u", 0)])
    assert told(answer) == {("u", 0)}
    assert scene.consumers.members["a"].state is MemberState.UNREVOKED_PARTITIONS


def test_what_a_former_release_does_not_know_makes_a_member_start_anew() -> None:
    scene = two_members()
    scene.consumers.put(scene.consumers.members["a"].but(state=MemberState(77)))
    assert ErrorCode(scene.beat("a", 2).error_code) is ErrorCode.FENCED_MEMBER_EPOCH
    assert ErrorCode(scene.beat("a", 2, owned=()).error_code) is ErrorCode.NONE


def test_new_partitions_and_deleted_topics_are_followed_by_the_next_heartbeat() -> None:
    scene = ConsumerScene({"t": 1}, group_consumer_assignment_interval_ms=0)
    epoch = scene.enter("a", "t", "u").member_epoch
    scene.set_topics(t=2)
    answer = scene.beat("a", epoch, owned=[("t", 0)])
    assert told(answer) == {("t", 0), ("t", 1)}
    scene.set_topics(t=2, u=1)
    answer = scene.beat("a", answer.member_epoch, owned=told(answer))
    assert told(answer) == {("t", 0), ("t", 1), ("u", 0)}
    scene.set_topics(u=1)
    answer = scene.beat("a", answer.member_epoch, owned=told(answer))
    assert told(answer) == {("u", 0)}


def test_other_topics_don_t_matter() -> None:
    scene = ConsumerScene({"t": 1})
    epoch = scene.enter("a", "t").member_epoch
    scene.set_topics(t=1, other=5)
    written = len(scene.log)
    assert scene.beat("a", epoch).member_epoch == epoch
    assert len(scene.log) == written


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    scene = ConsumerScene({"t": 2, "u": 2}, group_consumer_assignment_interval_ms=0)
    for name in ("a", "b", "c"):
        scene.enter(name, "t", "u", server_assignor="range" if name != "a" else "uniform")
    scene.settle("a", "b", "c")
    assert scene.describe().assignor_name == "range"
    # Range leaves the third with nothing, where uniform would not.
    assert sorted(len(scene.owned_by(name)) for name in ("a", "b", "c")) == [0, 2, 2]


def test_new_partitions_are_not_forgotten_when_the_first_write_about_them_fails() -> None:
    scene = ConsumerScene({"t": 1}, group_consumer_assignment_interval_ms=0)
    epoch = scene.enter("a", "t").member_epoch
    scene.beat("a", epoch)
    scene.set_topics(t=2)
    scene.fail_writes = NotEnoughReplicas
    scene.beat("a", epoch)
    scene.fail_writes = None
    assert told(scene.beat("a", epoch)) == {("t", 0), ("t", 1)}
