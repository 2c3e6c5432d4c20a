"""Members of a consumer group come, stay, are told apart from their past, and go."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.metadata.image import GROUP_CONFIG
from millstream.protocol.errors import ErrorCode
from tests.groups.classic_scene import GROUP
from tests.groups.consumer_scene import SESSION_MS, ConsumerScene, pairs

INT_MAX = 2**31 - 1


def code(answer: Any) -> ErrorCode:
    return ErrorCode(answer.error_code)


def owned(answer: Any) -> frozenset[tuple[str, int]]:
    return pairs({topic.topic_id: topic.partitions for topic in answer.assignment.topic_partitions})


def test_the_first_member_owns_everything_at_once() -> None:
    scene = ConsumerScene({"t": 2})
    answer = scene.enter("a", "t")
    assert (code(answer), answer.member_id, answer.member_epoch) == (ErrorCode.NONE, "a", 2)
    assert answer.heartbeat_interval_ms == 5_000
    assert owned(answer) == {("t", 0), ("t", 1)}
    assert scene.state_name == "Stable"


def test_a_heartbeat_without_news_is_answered_without_news_and_writes_nothing() -> None:
    scene = ConsumerScene()
    epoch = scene.enter("a", "t").member_epoch
    written = len(scene.log)
    answer = scene.beat("a", epoch)
    assert (answer.member_epoch, answer.assignment) == (epoch, None)
    assert len(scene.log) == written


def test_a_member_of_version_0_is_given_an_id() -> None:
    scene = ConsumerScene()
    answer = scene.enter("", "t", version=0)
    assert len(answer.member_id) == 22
    assert code(scene.beat(answer.member_id, answer.member_epoch, version=0)) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("bent", "sentence"),
    [
        ({"member_id": " \t"}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": " "}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"owned": [("t", 0)]}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
    ],
)
def test_a_join_has_to_make_sense(bent: dict[str, Any], sentence: str) -> None:
    scene = ConsumerScene()
    fields: dict[str, Any] = {"rebalance_timeout_ms": 1, "subscribed_topic_names": ["t"], "owned": ()} | bent
    answer = scene.beat(fields.pop("member_id", "a"), 0, **fields)
    assert (code(answer), scene.refusal) == (ErrorCode.INVALID_REQUEST, sentence)
    assert not scene.log


@pytest.mark.parametrize("epoch", [-3, -(2**31)])
def test_there_are_no_epochs_below_minus_two(epoch: int) -> None:
    scene = ConsumerScene()
    assert code(scene.beat("a", epoch)) is ErrorCode.INVALID_REQUEST


def test_an_assignor_that_the_broker_does_not_have_is_refused_and_the_others_named() -> None:
    scene = ConsumerScene(group_consumer_assignors="range")
    assert code(scene.enter("a", "t", server_assignor="uniform")) is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert scene.refusal.endswith("Supported assignors: range.")


def test_a_full_group_takes_nobody_else_in_and_keeps_who_it_has() -> None:
    scene = ConsumerScene(group_consumer_max_size=2)
    scene.enter("a", "t")
    scene.enter("b", "t")
    assert code(scene.enter("c", "t")) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert code(scene.enter("a", "t")) is ErrorCode.NONE


def test_who_is_no_member_hears_so() -> None:
    scene = ConsumerScene()
    assert code(scene.beat("a", 1)) is ErrorCode.GROUP_ID_NOT_FOUND
    assert code(scene.beat("a", -1)) is ErrorCode.GROUP_ID_NOT_FOUND
    scene.enter("a", "t")
    assert code(scene.beat("b", 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert code(scene.beat("b", -1)) is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("epoch", [3, 100, INT_MAX])
def test_an_epoch_from_the_future_is_fenced(epoch: int) -> None:
    scene = ConsumerScene()
    scene.enter("a", "t")
    assert code(scene.beat("a", epoch, owned=[])) is ErrorCode.FENCED_MEMBER_EPOCH


def test_the_epoch_before_is_believed_only_with_partitions_that_are_the_members() -> None:
    scene = ConsumerScene()
    scene.enter("a", "t")
    scene.enter("b", "t")
    scene.settle("a", "b")
    member = scene.consumers.members["a"]
    assert code(scene.beat("a", member.previous_epoch)) is ErrorCode.FENCED_MEMBER_EPOCH
    everything = [("t", index) for index in range(3)]
    assert code(scene.beat("a", member.previous_epoch, owned=everything)) is ErrorCode.FENCED_MEMBER_EPOCH
    answer = scene.beat("a", member.previous_epoch, owned=pairs(member.assigned))
    assert (code(answer), answer.member_epoch) == (ErrorCode.NONE, member.epoch)
    assert code(scene.beat("a", member.previous_epoch - 1, owned=[])) is ErrorCode.FENCED_MEMBER_EPOCH


def test_who_says_everything_anew_hears_everything_anew() -> None:
    scene = ConsumerScene({"t": 1})
    epoch = scene.enter("a", "t").member_epoch
    answer = scene.beat("a", epoch, owned=[("t", 0)], rebalance_timeout_ms=60_000, subscribed_topic_names=["t"])
    assert owned(answer) == {("t", 0)}


def test_a_silent_member_is_removed_when_its_session_ends() -> None:
    scene = ConsumerScene()
    scene.enter("a", "t")
    epoch = scene.enter("b", "t").member_epoch
    for _ in range(9):
        scene.pass_ms(SESSION_MS // 9)
        epoch = scene.beat("b", epoch, owned=()).member_epoch
    assert list(scene.consumers.members) == ["b"]
    scene.pass_ms(SESSION_MS)
    assert scene.state_name == "Empty"
    assert code(scene.beat("a", 2)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_sessions_start_anew_after_a_crash() -> None:
    scene = ConsumerScene()
    epoch = scene.enter("a", "t").member_epoch
    scene.pass_ms(SESSION_MS - 1)
    scene.crash()
    scene.pass_ms(SESSION_MS - 1)
    assert code(scene.beat("a", epoch)) is ErrorCode.NONE


def test_a_group_may_have_timeouts_of_its_own_within_the_brokers_bounds() -> None:
    scene = ConsumerScene()
    own = {"consumer.session.timeout.ms": "50000", "consumer.heartbeat.interval.ms": "99000"}
    scene.image = type(scene.image)(topics=scene.image.topics, offset=2, configs={(GROUP_CONFIG, GROUP): own})
    assert scene.enter("a", "t").heartbeat_interval_ms == 15_000
    scene.pass_ms(SESSION_MS + 1)
    assert scene.state_name == "Stable"
    scene.pass_ms(5_000)
    assert scene.state_name == "Empty"


def test_a_members_own_largest_timeout_does_no_harm() -> None:
    scene = ConsumerScene()
    answer = scene.enter("a", "t", rebalance_timeout_ms=INT_MAX)
    assert code(answer) is ErrorCode.NONE
    scene.enter("b", "t", rebalance_timeout_ms=INT_MAX)
    scene.pass_ms(1_000)
    scene.beat("b", 3)
    scene.beat("a", 2)
    scene.crash()
    assert scene.consumers.members["a"].rebalance_timeout_ms == INT_MAX


def test_when_everybody_has_left_the_group_is_empty_and_its_epoch_goes_on() -> None:
    scene = ConsumerScene()
    scene.enter("a", "t")
    answer = scene.beat("a", -1)
    assert (code(answer), answer.member_epoch) == (ErrorCode.NONE, -1)
    assert (scene.state_name, scene.consumers.epoch) == ("Empty", 3)
    scene.pass_ms(1_000)
    assert scene.enter("a", "t").member_epoch == 4


def test_an_assignment_is_made_at_most_once_in_an_interval() -> None:
    scene = ConsumerScene({"t": 4})
    scene.enter("a", "t")
    answer = scene.enter("b", "t")
    # The group is in its next epoch; the target is still that of the one before.
    assert (answer.member_epoch, owned(answer)) == (2, frozenset())
    assert scene.state_name == "Assigning"
    scene.pass_ms(1_000)
    scene.settle("a", "b")
    assert len(scene.owned_by("a")) == len(scene.owned_by("b")) == 2


def test_a_failed_write_changes_nothing() -> None:
    from millstream.protocol.errors import NotEnoughReplicas

    scene = ConsumerScene()
    scene.fail_writes = NotEnoughReplicas
    assert code(scene.enter("a", "t")) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert GROUP not in scene.machine.groups
    scene.fail_writes = None
    epoch = scene.enter("a", "t").member_epoch
    scene.fail_writes = NotEnoughReplicas
    assert code(scene.beat("a", -1)) is ErrorCode.NOT_ENOUGH_REPLICAS
    scene.fail_writes = None
    assert code(scene.beat("a", epoch)) is ErrorCode.NONE
