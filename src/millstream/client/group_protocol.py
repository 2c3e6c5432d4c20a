"""What classic consumers write into the opaque bytes of JoinGroup and SyncGroup: subscriptions and assignments.

An int16 version comes first. Newer versions only append, so one that is not known here is read as the newest known.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, TypeVar

from millstream.client.grouping import by_topic
from millstream.protocol.codec import decode_prefix, encode
from millstream.protocol.errors import MalformedMessage
from millstream.protocol.messages.data.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from millstream.protocol.messages.data.consumer_protocol_subscription import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from millstream.client import grouping

    T = TypeVar("T")

# The protocol type of ordinary consumers; other types (connect, ...) have bytes of their own.
CONSUMER = "consumer"
VERSION_MAX = 3
# Owned partitions and racks come later than this; a reader that gives up everything at a rebalance has neither.
VERSION_WRITTEN = 0
_VERSION = Struct(">h")


def write_subscription(topics: Sequence[str]) -> bytes:
    subscription = ConsumerProtocolSubscription(topics=list(topics))
    return _VERSION.pack(VERSION_WRITTEN) + encode(subscription, VERSION_WRITTEN)


def read_subscription(data: bytes) -> list[str]:
    """The topics that a member wants; MalformedMessage if it is not a subscription."""
    return _read(ConsumerProtocolSubscription, data).topics


def write_assignment(partitions: Iterable[grouping.TopicPartition]) -> bytes:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[
            TopicPartition(topic=topic, partitions=indexes) for topic, indexes in by_topic(partitions).items()
        ]
    )
    return _VERSION.pack(VERSION_WRITTEN) + encode(assignment, VERSION_WRITTEN)


def read_assignment(data: bytes) -> list[grouping.TopicPartition]:
    """The partitions of a member; no bytes at all mean none."""
    if not data:
        return []
    assigned = _read(ConsumerProtocolAssignment, data).assigned_partitions
    return [(topic.topic, index) for topic in assigned for index in topic.partitions]


def _read(kind: type[T], data: bytes) -> T:
    if len(data) < _VERSION.size or (version := _VERSION.unpack_from(data)[0]) < 0:
        raise MalformedMessage("the consumer's bytes begin with no version")
    return decode_prefix(kind, min(version, VERSION_MAX), data, _VERSION.size)[0]
