"""Partitions by topic, in the two shapes that a consumer group uses.

A target assignment says which partitions a member shall have (`Partitions`); what a member has at present also says
since which epoch (`Owned`), because a commit from before that epoch came from a former owner (KIP-1251).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from millstream.protocol.messages.groups.consumer_group_current_member_assignment import TopicPartitions
from millstream.protocol.messages.groups.consumer_group_target_assignment_member import TopicPartition
from millstream.protocol.uuid import Uuid

if TYPE_CHECKING:
    from millstream.groups.assignors.spec import Partitions

# By topic: each partition, and the epoch in which the member got it.
Owned = Mapping[Uuid, Mapping[int, int]]

NOTHING_OWNED: Owned = {}
NO_PARTITIONS: Partitions = {}


class ListedPartitions(Protocol):
    """How requests and records list the partitions of a topic."""

    topic_id: Uuid
    partitions: list[int]


def owned_from_record(listed: Iterable[TopicPartitions], member_epoch: int) -> Owned:
    """Records from before Kafka 4.3 have no epochs; the member's own is the best guess then."""
    guess = max(member_epoch, 0)
    owned: dict[Uuid, dict[int, int]] = {}
    for topic in listed:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [guess] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def owned_to_record(owned: Owned) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[partition] for partition in sorted(partitions)],
        )
        for topic_id, partitions in owned.items()
    ]


def target_from_record(listed: Iterable[TopicPartition]) -> Partitions:
    return {topic.topic_id: frozenset(topic.partitions) for topic in listed}


def target_to_record(target: Partitions) -> list[TopicPartition]:
    return [TopicPartition(topic_id=topic_id, partitions=sorted(target[topic_id])) for topic_id in target]


def owned_since(partitions: Partitions, epoch: int) -> Owned:
    """All of these, since one epoch."""
    return {topic_id: dict.fromkeys(sorted(indexes), epoch) for topic_id, indexes in partitions.items()}


def are_all_owned(listed: Iterable[ListedPartitions] | None, owned: Owned) -> bool:
    """Whether a member that reports these owns them all; a member that reports nothing claims nothing."""
    if listed is None:
        return False
    return all(
        topic.topic_id in owned and all(partition in owned[topic.topic_id] for partition in topic.partitions)
        for topic in listed
    )
