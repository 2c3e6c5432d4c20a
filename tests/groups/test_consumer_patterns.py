"""Patterns of topics in RE2's syntax, looked up by the broker."""

from __future__ import annotations

import time

import pytest

from millstream.groups.regex import check_pattern, matching
from millstream.protocol.errors import ErrorCode, InvalidPattern, NotEnoughReplicas
from tests.groups.consumer_scene import ConsumerScene, pairs

LOOKUP_MS = 10_001


def by_pattern(scene: ConsumerScene, member_id: str, pattern: str) -> None:
    answer = scene.enter(member_id, subscribed_topic_names=None, subscribed_topic_regex=pattern)
    assert answer.error_code == ErrorCode.NONE, scene.refusal


def quick(**topics: int) -> ConsumerScene:
    return ConsumerScene(topics, group_consumer_assignment_interval_ms=0)


def test_a_member_gets_the_topics_that_its_pattern_matches_from_end_to_end() -> None:
    scene = quick(red=1, redder=1, blue=1)
    by_pattern(scene, "a", "red|blue")
    assert scene.consumers.subscriptions.resolved == {}
    scene.settle("a")
    assert scene.owned_by("a") == {("red", 0), ("blue", 0)}


def test_names_and_patterns_add_up() -> None:
    scene = quick(red=1, blue=1)
    scene.enter("a", "blue", subscribed_topic_regex="r.*")
    scene.settle("a")
    assert scene.owned_by("a") == {("red", 0), ("blue", 0)}


def test_what_is_no_pattern_is_refused() -> None:
    scene = quick(red=1)
    answer = scene.enter("a", subscribed_topic_names=None, subscribed_topic_regex="(red")
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "`(red`" in scene.refusal
    assert not scene.log


@pytest.mark.parametrize("pattern", ["(?=a)", r"\1", "(?<!a)b", "a++", "(?P=x)", "[[:nosuch:]]", "a{1001}"])
def test_what_re2_cannot_match_in_linear_time_is_no_pattern(pattern: str) -> None:
    with pytest.raises(InvalidPattern):
        check_pattern(pattern)


def test_a_pattern_that_would_take_others_years_is_matched_at_once() -> None:
    names = ["a" * 249] * 100
    start = time.thread_time()
    assert matching("(a|aa)+b", names) == frozenset()
    assert matching("(a*)*(a*)*(a*)*c", names) == frozenset()
    assert time.thread_time() - start < 30


def test_topics_created_later_are_found_at_the_next_look_up() -> None:
    scene = quick(red=1)
    by_pattern(scene, "a", "r.*")
    scene.settle("a")
    scene.set_topics(red=1, rust=1)
    scene.pass_ms(LOOKUP_MS)
    scene.settle("a")
    assert scene.owned_by("a") == {("red", 0), ("rust", 0)}


def test_two_look_ups_are_ten_seconds_apart() -> None:
    scene = quick(red=1)
    by_pattern(scene, "a", "r.*")
    scene.settle("a", rounds=1)
    scene.set_topics(red=1, rust=1)
    scene.settle("a", rounds=3)
    assert scene.owned_by("a") == {("red", 0)}


def test_topics_that_the_member_may_not_describe_are_not_found() -> None:
    scene = quick(red=1, secret=1)
    scene.unseen = frozenset({"secret"})
    by_pattern(scene, "a", ".*")
    scene.settle("a")
    assert scene.owned_by("a") == {("red", 0)}
    # What it may see is asked again now and then.
    scene.unseen = frozenset()
    for _ in range(61):
        scene.pass_ms(10_000)
        member = scene.consumers.members["a"]
        scene.beat("a", member.epoch, owned=pairs(member.assigned))
    scene.settle("a")
    assert scene.owned_by("a") == {("red", 0), ("secret", 0)}


def test_a_pattern_is_forgotten_with_its_last_member() -> None:
    scene = quick(red=1)
    by_pattern(scene, "a", "r.*")
    by_pattern(scene, "b", "r.*")
    scene.settle("a", "b")
    scene.beat("a", -1)
    assert list(scene.consumers.subscriptions.resolved) == ["r.*"]
    scene.settle("b")
    scene.beat("b", scene.consumers.members["b"].epoch, subscribed_topic_regex="", owned=[("red", 0)])
    assert scene.consumers.subscriptions.resolved == {}
    scene.settle("b")
    assert scene.owned_by("b") == frozenset()


def test_a_look_up_that_outlives_its_group_does_nothing() -> None:
    scene = quick(red=1)
    by_pattern(scene, "a", "r.*")
    scene.beat("a", -1)
    scene.pass_ms(1)
    assert scene.consumers.subscriptions.resolved == {}


def test_a_look_up_that_was_lost_in_a_crash_is_made_up_for() -> None:
    scene = quick(red=1)
    by_pattern(scene, "a", "r.*")
    scene.crash()
    scene.settle("a")
    assert scene.owned_by("a") == {("red", 0)}


def test_a_look_up_that_was_asked_for_in_vain_is_asked_for_again() -> None:
    scene = quick(red=1)
    scene.fail_writes = NotEnoughReplicas
    scene.enter("a", subscribed_topic_names=None, subscribed_topic_regex="r.*")
    scene.fail_writes = None
    by_pattern(scene, "a", "r.*")
    scene.settle("a")
    assert scene.owned_by("a") == {("red", 0)}
