"""CreateTopics: what is made, what is refused and why."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.clusters import SETTINGS, Dice, after, cluster, directory_of, topic, with_topics

from millstream.metadata.assignments import PARTITIONS_PER_REQUEST_MAX
from millstream.metadata.decide_create_topics import decide_create_topics
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.create_topics import CreatableReplicaAssignment, CreateTopicsRequest
from millstream.protocol.uuid import ZERO_UUID
from millstream.settings.effective import Settings


def create(image, *topics, settings=SETTINGS, validate_only=False, **permissions):
    request = CreateTopicsRequest(topics=list(topics), validate_only=validate_only)
    return decide_create_topics(image, request, settings=settings, random=Dice(), **permissions)


def codes(decision):
    return {result.name: ErrorCode(result.error_code) for result in decision.response.topics}


def refusal(image, *topics, **options):
    decision = create(image, *topics, **options)
    assert decision.records == ()
    (result,) = decision.response.topics
    assert result.error_message
    return ErrorCode(result.error_code)


def test_a_topic_is_made_with_its_partitions_and_configs():
    image = cluster([1, 2, 3])
    decision = create(image, topic("orders", 4, 2, configs={"retention.ms": "1000"}))
    made = after(image, decision)
    orders = made.topics.by_name["orders"]
    assert len(orders.partitions) == 4
    assert made.topic_config("orders") == {"retention.ms": "1000"}
    for partition in orders.partitions.values():
        assert len(partition.replicas) == 2
        assert partition.isr == partition.replicas
        assert partition.leader == partition.replicas[0]
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)
        assert partition.directories == tuple(directory_of(replica) for replica in partition.replicas)
    (result,) = decision.response.topics
    assert result.topic_id == orders.id != ZERO_UUID
    assert (result.num_partitions, result.replication_factor) == (4, 2)


def test_the_answer_tells_every_effective_config():
    decision = create(
        cluster(),
        topic("orders", configs={"retention.ms": "1000"}),
        settings=Settings({"log.segment.bytes": "2097152"}),
    )
    configs = {config.name: (config.value, config.config_source) for config in decision.response.topics[0].configs}
    assert configs["retention.ms"] == ("1000", 1)
    assert configs["segment.bytes"] == ("2097152", 4)
    assert configs["cleanup.policy"] == ("delete", 5)
    assert list(configs) == sorted(configs)


def test_minus_one_stands_for_the_defaults():
    settings = Settings({"num.partitions": "5", "default.replication.factor": "2"})
    decision = create(cluster([1, 2]), topic("orders", -1, -1), settings=settings)
    (result,) = decision.response.topics
    assert (result.num_partitions, result.replication_factor) == (5, 2)


def test_validate_only_answers_and_makes_nothing():
    decision = create(cluster(), topic("orders", 3), validate_only=True)
    assert decision.records == ()
    assert decision.response.topics[0].num_partitions == 3


def test_a_bad_neighbour_does_no_harm():
    decision = create(cluster(), topic("bad name"), topic("good"))
    assert codes(decision) == {"bad name": ErrorCode.INVALID_TOPIC_EXCEPTION, "good": ErrorCode.NONE}
    assert "good" in after(cluster(), decision).topics.by_name


def test_a_topic_asked_for_twice_is_not_made():
    decision = create(cluster(), topic("twin", 1), topic("twin", 2), topic("single"))
    assert codes(decision) == {"twin": ErrorCode.INVALID_REQUEST, "single": ErrorCode.NONE}


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (topic("orders"), ErrorCode.TOPIC_ALREADY_EXISTS),
        (topic("a.b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("__cluster_metadata"), ErrorCode.INVALID_REQUEST),
        (topic("x" * 250), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic("t", 0), ErrorCode.INVALID_PARTITIONS),
        (topic("t", -2), ErrorCode.INVALID_PARTITIONS),
        (topic("t", 1, 0), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, -2), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", 1, 4), ErrorCode.INVALID_REPLICATION_FACTOR),
        (topic("t", assigned={0: [9]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assigned={0: [1, 1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assigned={0: []}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assigned={1: [1]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", assigned={0: [1], 1: [1, 2]}), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (topic("t", configs={"no.such.config": "1"}), ErrorCode.INVALID_CONFIG),
        (topic("t", configs={"retention.ms": "soon"}), ErrorCode.INVALID_CONFIG),
        (topic("t", configs={"retention.ms": None}), ErrorCode.INVALID_CONFIG),
        (
            topic("t", configs={"min.compaction.lag.ms": "2", "max.compaction.lag.ms": "1"}),
            ErrorCode.INVALID_CONFIG,
        ),
        (topic("t", configs={"cleanup.policy": "delete," * 9000 + "delete"}), ErrorCode.INVALID_CONFIG),
    ],
    ids=lambda value: value.name[:20] if isinstance(value, ErrorCode | str) else None,
)
def test_what_cannot_be_is_refused(wanted, code):
    image = with_topics(cluster([1, 2, 3]), topic("orders"), topic("a_b"))
    assert refusal(image, wanted) is code


def test_names_that_collide_in_one_request_are_refused_too():
    decision = create(cluster(), topic("x.y"), topic("x_y"))
    assert codes(decision) == {"x.y": ErrorCode.NONE, "x_y": ErrorCode.INVALID_TOPIC_EXCEPTION}


def test_an_assignment_by_hand_leaves_the_sizes_open():
    by_hand = topic("t", assigned={0: [2, 1], 1: [1, 2]})
    assert codes(create(cluster([1, 2]), by_hand)) == {"t": ErrorCode.NONE}
    for wrong in (
        msgspec.structs.replace(by_hand, num_partitions=2),
        msgspec.structs.replace(by_hand, replication_factor=2),
    ):
        assert refusal(cluster([1, 2]), wrong) is ErrorCode.INVALID_REQUEST


def test_a_partition_assigned_twice_is_refused():
    wanted = topic("t", assigned={0: [1]})
    wanted.assignments.append(CreatableReplicaAssignment(partition_index=0, broker_ids=[1]))
    assert refusal(cluster(), wanted) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_fenced_brokers_take_replicas_but_are_not_in_sync():
    image = cluster([1], fenced=[2])
    made = with_topics(image, topic("t", assigned={0: [2, 1]}))
    partition = made.topics.by_name["t"].partitions[0]
    assert (partition.replicas, partition.isr, partition.leader) == ((2, 1), (1,), 1)
    assert refusal(image, topic("t", assigned={0: [2]})) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_cluster_without_active_brokers_makes_nothing():
    assert refusal(cluster([], fenced=[1]), topic("t")) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_request_has_a_largest_size():
    decision = create(cluster(), topic("huge", PARTITIONS_PER_REQUEST_MAX), topic("one more"))
    assert set(codes(decision).values()) == {ErrorCode.POLICY_VIOLATION}
    assert decision.records == ()


@pytest.mark.parametrize(
    "limit", ["millstream.topics.max", "millstream.topic.partitions.max", "millstream.partitions.max"]
)
def test_limits_of_the_cluster_are_settings(limit):
    image = with_topics(cluster(), topic("first", 2))
    assert refusal(image, topic("second", 2), settings=Settings({limit: "1"})) is ErrorCode.POLICY_VIOLATION


def test_who_may_not_create_hears_so():
    decision = create(cluster(), topic("mine"), topic("yours"), may_create=lambda name: name == "mine")
    assert codes(decision) == {"mine": ErrorCode.NONE, "yours": ErrorCode.TOPIC_AUTHORIZATION_FAILED}


def test_who_may_not_see_configs_is_told_nothing_of_the_topic():
    (result,) = create(cluster(), topic("t", 3), may_see_configs=lambda _: False).response.topics
    assert result.error_code == ErrorCode.NONE
    assert result.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert (result.num_partitions, result.replication_factor, result.configs) == (-1, -1, [])


@given(
    wanted=st.lists(
        st.builds(topic, st.sampled_from(["a", "b", "c.d", "c_d", "bad!"]), st.integers(-2, 5), st.integers(-2, 4)),
        max_size=6,
    )
)
def test_every_topic_is_answered_once_and_records_always_apply(wanted):
    image = with_topics(cluster([1, 2, 3]), topic("b"))
    decision = create(image, *wanted)
    answers = codes(decision)
    assert set(answers) == {entry.name for entry in wanted}
    assert len(decision.response.topics) == len(answers)
    made = after(image, decision)
    assert {name for name, code in answers.items() if code is ErrorCode.NONE} == set(made.topics.by_name) - {"b"}
