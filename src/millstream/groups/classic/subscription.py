"""What a classic consumer tells its group's leader, read by the broker for one purpose: which topics are in use.

The bytes are the clients' own business, and any version of them may arrive. Every version starts with what version 0
has, so that is all that is read; bytes that make no sense mean "the topics are not known", never a refusal.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from millstream.protocol.codec import decode_prefix
from millstream.protocol.errors import MalformedMessage
from millstream.protocol.messages.data.consumer_protocol_subscription import ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Iterable

# The protocol type of consumers, whose metadata is a ConsumerProtocolSubscription.
CONSUMER_PROTOCOL_TYPE = "consumer"

_VERSION = Struct(">h")
_COMMON_VERSION = 0


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all these subscriptions; None if one of them cannot be read."""
    topics: set[str] = set()
    for subscription in subscriptions:
        read = _topics(subscription)
        if read is None:
            return None
        topics.update(read)
    return frozenset(topics)


def _topics(subscription: bytes) -> list[str] | None:
    if len(subscription) < _VERSION.size or _VERSION.unpack_from(subscription)[0] < 0:
        return None
    try:
        read, _ = decode_prefix(ConsumerProtocolSubscription, _COMMON_VERSION, subscription, _VERSION.size)
    except MalformedMessage:
        return None
    return read.topics
