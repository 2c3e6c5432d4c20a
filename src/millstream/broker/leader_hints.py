"""Where the leader is, told together with the refusal that another broker leads (KIP-951).

A client that hears NOT_LEADER_OR_FOLLOWER goes straight to the broker named, instead of waiting a while and asking
around for new metadata first. A hint is given only if it is news: a broker that itself waits for metadata names nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.broker.addresses import address_for
from millstream.metadata.image import NO_LEADER
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from millstream.broker.dispatch import Context
    from millstream.broker.node import Node
    from millstream.protocol.uuid import Uuid

HINTED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})


class LeaderHint(NamedTuple):
    """Who leads, and since which epoch."""

    leader_id: int
    leader_epoch: int


class Address(NamedTuple):
    """A broker, as clients of this listener reach it."""

    node_id: int
    host: str
    port: int
    rack: str | None


def leader_hint(broker: Node, topic: str | Uuid, index: int) -> LeaderHint | None:
    """Who leads the partition as far as this broker knows."""
    topics = broker.image.topics
    found = topics.by_name.get(topic) if isinstance(topic, str) else topics.by_id.get(topic)
    partition = None if found is None else found.partitions.get(index)
    if partition is None or partition.leader == NO_LEADER:
        return None
    return LeaderHint(partition.leader, partition.leader_epoch)


def addresses_of(ctx: Context, leader_ids: Iterable[int]) -> Iterator[Address]:
    """Where to find them; each is named once."""
    brokers = ctx.broker.image.brokers
    for leader_id in dict.fromkeys(leader_ids):
        broker = brokers.get(leader_id)
        address = None if broker is None else address_for(ctx, broker)
        if broker is not None and address is not None:
            yield Address(leader_id, *address, broker.rack)


def why_not_hosted(broker: Node, topic: str | Uuid, index: int) -> ErrorCode:
    """What a client hears that asks the wrong broker for a partition: go elsewhere, or there is no such thing."""
    topics = broker.image.topics
    if isinstance(topic, str):
        known = topics.by_name.get(topic)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        known = topics.by_id.get(topic)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
    if known is None:
        return unknown
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if index in known.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
