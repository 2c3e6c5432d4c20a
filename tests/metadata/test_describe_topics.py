"""Metadata and DescribeTopicPartitions: what one client sees of the cluster."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metadata.clusters import cluster, fence, topic, with_records, with_topics

from millstream.metadata.describe_topics import View, describe_topic_partitions, describe_topics
from millstream.metadata.image import NO_LEADER
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic
from millstream.protocol.uuid import ZERO_UUID, Uuid

IMAGE = with_topics(
    cluster([1, 2]), topic("a", assigned={0: [1, 2], 1: [2, 1], 2: [1, 2]}), topic("b", 2), topic("__consumer_offsets")
)
LATEST = 13


def reached(broker):
    endpoint = broker.endpoint("PLAINTEXT")
    return None if endpoint is None else (endpoint.host, endpoint.port)


def view(image=IMAGE, **options):
    return View(image, options.pop("address", reached), **options)


def ask(names, version=LATEST, seen=None, refusals=None):
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
    return describe_topics(seen or view(), MetadataRequest(topics=topics), version, refusals or {})


def ask_ids(*ids, seen=None):
    topics = [MetadataRequestTopic(name=None, topic_id=each) for each in ids]
    return describe_topics(seen or view(), MetadataRequest(topics=topics), LATEST, {})


def test_null_asks_for_all_topics_and_in_version_0_so_does_nothing():
    assert [answer.name for answer in ask(None)] == ["a", "b", "__consumer_offsets"]
    assert [answer.name for answer in ask([], 0)] == ["a", "b", "__consumer_offsets"]
    assert ask([], 1) == []


def test_the_clusters_own_topics_are_marked():
    assert {answer.name: answer.is_internal for answer in ask(None)} == {
        "a": False,
        "b": False,
        "__consumer_offsets": True,
    }


def test_a_topic_by_id_brings_its_name():
    (answer,) = ask_ids(IMAGE.topics.by_name["a"].id)
    assert (answer.name, answer.error_code) == ("a", ErrorCode.NONE)
    (answer,) = ask_ids(Uuid(b"y" * 16))
    assert (answer.name, answer.error_code) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_a_topic_asked_for_twice_is_answered_once():
    assert len(ask(["a", "a"])) == 1
    request = MetadataRequest(
        topics=[
            MetadataRequestTopic(name="a"),
            MetadataRequestTopic(name=None, topic_id=IMAGE.topics.by_name["a"].id),
        ]
    )
    assert len(describe_topics(view(), request, LATEST, {})) == 1


@pytest.mark.parametrize(
    ("name", "code"),
    [("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("bad name", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
def test_what_is_not_there_says_why(name, code):
    (answer,) = ask([name])
    assert (answer.error_code, answer.topic_id, answer.partitions) == (code, ZERO_UUID, [])


def test_a_failed_creation_is_the_reason():
    (answer,) = ask(["nope"], refusals={"nope": ErrorCode.POLICY_VIOLATION})
    assert answer.error_code == ErrorCode.POLICY_VIOLATION


def test_what_may_not_be_described_is_hidden_in_lists_and_refused_by_name():
    seen = view(may_describe=lambda name: name == "b")
    assert [answer.name for answer in ask(None, seen=seen)] == ["b"]
    refused, missing = ask(["a", "nope"], seen=seen)
    assert refused.error_code == missing.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    (by_id,) = ask_ids(IMAGE.topics.by_name["a"].id, seen=seen)
    assert (by_id.name, by_id.error_code) == (None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def test_fenced_brokers_are_not_shown_and_their_replicas_are_offline():
    seen = view(fence(IMAGE, 2))
    assert [broker.node_id for broker in seen.brokers()] == [1]
    (answer,) = ask(["a"], seen=seen)
    assert [partition.offline_replicas for partition in answer.partitions] == [[2], [2], [2]]
    assert [partition.error_code for partition in answer.partitions] == [
        ErrorCode.NONE,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NONE,
    ]
    assert answer.partitions[1].leader_id == NO_LEADER


def test_version_0_leaves_offline_replicas_out():
    (answer,) = ask(["a"], 0, view(fence(IMAGE, 2)))
    assert answer.partitions[0].error_code == ErrorCode.REPLICA_NOT_AVAILABLE
    assert answer.partitions[0].replica_nodes == answer.partitions[0].isr_nodes == [1]


def test_a_partition_without_a_leader_says_so():
    topic_id = IMAGE.topics.by_name["a"].id
    image = with_records(IMAGE, PartitionChangeRecord(partition_id=0, topic_id=topic_id, leader=NO_LEADER))
    partition = ask(["a"], seen=view(image))[0].partitions[0]
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, NO_LEADER)


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
def test_a_leader_without_the_clients_listener_cannot_be_reached(version, code):
    seen = view(address=lambda broker: None if broker.id == 2 else reached(broker))
    assert ask(["a"], version, seen)[0].partitions[1].error_code == code
    assert [broker.node_id for broker in seen.brokers()] == [1]


def pages(limit, names=(), limit_max=2000):
    """Follow the cursor to the end: (topic, partition) in the order they came, and how many each page had."""
    cursor, seen, sizes = None, [], []
    while True:
        answer = describe_topic_partitions(
            view(),
            DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name=name) for name in names], response_partition_limit=limit, cursor=cursor
            ),
            limit_max=limit_max,
        )
        page = [(topic.name, part.partition_index) for topic in answer.topics for part in topic.partitions]
        seen += page
        sizes.append(len(page))
        cursor = answer.next_cursor
        if cursor is None:
            return seen, sizes


EVERYTHING = [("__consumer_offsets", 0), ("a", 0), ("a", 1), ("a", 2), ("b", 0), ("b", 1)]


@given(limit=st.integers(-3, 10), limit_max=st.integers(1, 10))
def test_pages_bring_everything_once_in_order_and_never_too_much(limit, limit_max):
    seen, sizes = pages(limit, limit_max=limit_max)
    assert seen == EVERYTHING
    assert max(sizes) <= max(1, min(limit, limit_max))


def test_named_topics_come_in_the_order_of_names():
    answer = describe_topic_partitions(
        view(),
        DescribeTopicPartitionsRequest(topics=[TopicRequest(name=name) for name in ("nope", "b", "a", "a")]),
        limit_max=2000,
    )
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("a", ErrorCode.NONE),
        ("b", ErrorCode.NONE),
        ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@pytest.mark.parametrize("cursor", [("b", 0), ("a", -1)])
def test_a_cursor_must_lie_in_what_is_asked_for(cursor):
    answer = describe_topic_partitions(
        view(),
        DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name="a")], cursor=Cursor(topic_name=cursor[0], partition_index=cursor[1])
        ),
        limit_max=2000,
    )
    assert [topic.error_code for topic in answer.topics] == [ErrorCode.INVALID_REQUEST]
