"""DeleteTopics: by name or id, each topic once."""

from __future__ import annotations

import pytest
from tests.metadata.clusters import after, cluster, topic, with_topics

from millstream.metadata.decide_delete_topics import decide_delete_topics
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from millstream.protocol.uuid import ZERO_UUID, Uuid

IMAGE = with_topics(cluster(), topic("a", 2, configs={"retention.ms": "1"}), topic("b"))
NOBODY = Uuid(b"nobody-has-this!")


def named(name):
    return DeleteTopicState(name=name, topic_id=ZERO_UUID)


def identified(topic_id):
    return DeleteTopicState(name=None, topic_id=topic_id)


def id_of(name):
    return IMAGE.topics.by_name[name].id


def delete(*entries, version=6, **options):
    return decide_delete_topics(
        IMAGE, DeleteTopicsRequest(topics=list(entries), timeout_ms=0), version=version, **options
    )


def outcome(decision):
    return [(result.name, ErrorCode(result.error_code)) for result in decision.response.responses]


def test_a_topic_goes_with_its_configs():
    decision = delete(named("a"))
    gone = after(IMAGE, decision)
    assert list(gone.topics.by_name) == ["b"]
    assert gone.topic_config("a") == {}
    assert decision.response.responses[0].topic_id == id_of("a")


def test_an_id_is_as_good_as_a_name():
    decision = delete(identified(id_of("b")))
    assert outcome(decision) == [("b", ErrorCode.NONE)]
    assert list(after(IMAGE, decision).topics.by_name) == ["a"]


def test_older_versions_name_topics_in_a_list():
    request = DeleteTopicsRequest(topic_names=["a", "nope"], timeout_ms=0)
    decision = decide_delete_topics(IMAGE, request, version=5)
    assert outcome(decision) == [("a", ErrorCode.NONE), ("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([named("nope")], [("nope", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]),
        ([identified(NOBODY)], [(None, ErrorCode.UNKNOWN_TOPIC_ID)]),
        ([DeleteTopicState(name="a", topic_id=id_of("a"))], [("a", ErrorCode.INVALID_REQUEST)]),
        ([DeleteTopicState(name=None, topic_id=ZERO_UUID)], [(None, ErrorCode.INVALID_REQUEST)]),
        ([named("a"), named("a")], [("a", ErrorCode.INVALID_REQUEST)]),
        ([named("a"), identified(id_of("a"))], [("a", ErrorCode.INVALID_REQUEST)]),
        ([named("nope"), named("nope")], [("nope", ErrorCode.INVALID_REQUEST)]),
    ],
)
def test_what_cannot_be_deleted_is_answered_once_and_stays(entries, expected):
    decision = delete(*entries)
    assert decision.records == ()
    assert outcome(decision) == expected
    assert all(result.error_message for result in decision.response.responses)


@pytest.mark.parametrize(("version", "code"), [(2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)])
def test_deletion_can_be_switched_off(version, code):
    decision = delete(named("a"), version=version, enabled=False)
    assert decision.records == ()
    assert outcome(decision) == [("a", code)]


def test_who_may_not_describe_a_topic_learns_no_name_from_its_id():
    decision = delete(identified(id_of("a")), may_delete=lambda _: False, may_describe=lambda _: False)
    assert outcome(decision) == [(None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)]


def test_who_may_not_delete_an_unknown_topic_does_not_learn_that_it_is_unknown():
    decision = delete(named("a"), named("nope"), may_delete=lambda _: False)
    assert {code for _, code in outcome(decision)} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
