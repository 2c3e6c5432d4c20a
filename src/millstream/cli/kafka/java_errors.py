"""Refusals as Kafka's tools print them: the class of Java's exception, and a sentence.

Scripts look for these lines. The class follows from the code's name in most cases; sentences are the brokers' own,
or for codes that come without one, those that Kafka's client has for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from millstream.client.errors import Refusal

PACKAGE = "org.apache.kafka.common.errors"
# Only classes that are not named after their code.
CLASSES = {
    ErrorCode.NON_EMPTY_GROUP: "GroupNotEmptyException",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "CoordinatorLoadInProgressException",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "InvalidTopicException",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    ErrorCode.REQUEST_TIMED_OUT: "TimeoutException",
}
SENTENCES = {
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: (
        "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."
    ),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.UNKNOWN_MEMBER_ID: "The coordinator is not aware of this member.",
    ErrorCode.GROUP_AUTHORIZATION_FAILED: "Group authorization failed.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Cluster authorization failed.",
}


def java_sentence(refusal: Refusal) -> str:
    return refusal.broker_message or SENTENCES.get(refusal.code) or str(refusal)


def java_exception(refusal: Refusal) -> str:
    """`org.apache.kafka.common.errors.GroupNotEmptyException: The group is not empty.`"""
    named = "".join(word.capitalize() for word in refusal.code.name.split("_")) + "Exception"
    return f"{PACKAGE}.{CLASSES.get(refusal.code, named)}: {java_sentence(refusal)}"
