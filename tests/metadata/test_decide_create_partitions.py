"""CreatePartitions: topics grow and never shrink."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import SETTINGS, Dice, after, cluster, topic, with_topics

from millstream.metadata.decide_create_partitions import decide_create_partitions
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from millstream.settings.effective import Settings

IMAGE = with_topics(cluster([1, 2, 3]), topic("orders", 2, 2), topic("users", 1, 1))


def grown(name, count, assigned=None):
    assignments = None if assigned is None else [CreatePartitionsAssignment(broker_ids=list(each)) for each in assigned]
    return CreatePartitionsTopic(name=name, count=count, assignments=assignments)


def grow(*topics, validate_only=False, settings=SETTINGS, **options):
    request = CreatePartitionsRequest(topics=list(topics), timeout_ms=0, validate_only=validate_only)
    return decide_create_partitions(IMAGE, request, settings=settings, random=Dice(), **options)


def codes(decision):
    return {result.name: ErrorCode(result.error_code) for result in decision.response.results}


def test_new_partitions_have_as_many_replicas_as_the_old_ones():
    decision = grow(grown("orders", 5))
    before, now = (image.topics.by_name["orders"].partitions for image in (IMAGE, after(IMAGE, decision)))
    assert sorted(now) == [0, 1, 2, 3, 4]
    assert all(now[number] == before[number] for number in before)
    assert {len(partition.replicas) for partition in now.values()} == {2}


def test_an_assignment_by_hand_is_taken():
    now = after(IMAGE, grow(grown("orders", 4, [[3, 1], [2, 3]])))
    partitions = now.topics.by_name["orders"].partitions
    assert [partitions[number].replicas for number in (2, 3)] == [(3, 1), (2, 3)]


def test_validate_only_adds_nothing():
    decision = grow(grown("orders", 5), validate_only=True)
    assert decision.records == ()
    assert codes(decision) == {"orders": ErrorCode.NONE}


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (grown("nope", 3), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (grown("orders", 2), ErrorCode.INVALID_PARTITIONS),
        (grown("orders", 1), ErrorCode.INVALID_PARTITIONS),
        (grown("orders", -1), ErrorCode.INVALID_PARTITIONS),
        (grown("orders", 4, [[1, 2]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("orders", 3, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("orders", 3, [[1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("orders", 3, [[1, 1]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("orders", 3, [[1, 9]]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (grown("orders", 10_003), ErrorCode.POLICY_VIOLATION),
    ],
)
def test_what_cannot_be_is_refused_and_its_neighbour_grows(wanted, code):
    decision = grow(wanted, grown("users", 2))
    assert codes(decision) == {wanted.name: code, "users": ErrorCode.NONE}
    assert len(decision.records) == 1


def test_a_topic_named_twice_is_refused_and_answered_once():
    decision = grow(grown("orders", 3), grown("orders", 4))
    assert codes(decision) == {"orders": ErrorCode.INVALID_REQUEST}
    assert len(decision.response.results) == 1
    assert decision.records == ()


@pytest.mark.parametrize("limit", ["millstream.topic.partitions.max", "millstream.partitions.max"])
def test_limits_are_settings(limit):
    decision = grow(grown("orders", 6), settings=Settings({limit: "5"}))
    assert codes(decision) == {"orders": ErrorCode.POLICY_VIOLATION}


def test_who_may_not_alter_hears_so():
    assert codes(grow(grown("orders", 3), may_alter=lambda _: False)) == {
        "orders": ErrorCode.TOPIC_AUTHORIZATION_FAILED
    }
