"""Who leads when brokers go and come: the partition changes that a broker's state brings with it.

The rules of a single partition are in `partition_change.py`; here it is found out which partitions they touch.

- A broker that leaves (fenced, or shutting down) leads nothing and leaves the ISR.
- After an unclean shutdown a broker may have lost what it had not synced, so it is no longer an eligible leader.
- A broker that returns takes over partitions without a leader that it may lead.
- From time to time leadership goes back to the preferred replicas, or brokers that were restarted would lead nothing
  for ever, and partitions without a leader whose owner allows it get one that has not everything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.image import NO_LEADER
from millstream.metadata.partition_change import (
    ELIGIBLE_LEADER_REPLICAS,
    Election,
    Wanted,
    change_partition,
    eligible_leaders_enabled,
    has_preferred_leader,
    unclean_election_allowed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.metadata.image import MetadataImage, PartitionImage, TopicImage
    from millstream.metadata.record_types import PartitionChangeRecord
    from millstream.protocol.uuid import Uuid

__all__ = [
    "ELIGIBLE_LEADER_REPLICAS",
    "changes_after_unclean_shutdown",
    "changes_for_leaderless",
    "changes_for_preferred_leaders",
    "changes_when_broker_leaves",
    "changes_when_broker_returns",
    "changes_when_directories_fail",
    "eligible_leaders_enabled",
    "last_resort",
    "leads_any",
]


def changes_when_broker_leaves(image: MetadataImage, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """Every partition that had the broker in sync, or as its leader, without it."""
    for topic, number, partition in _partitions(image):
        if partition.leader == broker_id or broker_id in partition.isr:
            yield from _changed(image, topic, number, Wanted(without=broker_id, election=last_resort(image, topic)))


def changes_after_unclean_shutdown(image: MetadataImage, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """What the broker wrote last may be gone: it is no longer eligible to lead."""
    if not eligible_leaders_enabled(image):
        return
    for topic, number, partition in _partitions(image):
        if broker_id in partition.elr or broker_id in partition.isr:
            yield from _changed(image, topic, number, Wanted(doubtful=broker_id, election=last_resort(image, topic)))


def changes_when_broker_returns(image: MetadataImage, broker_id: int) -> Iterator[PartitionChangeRecord]:
    """Partitions without a leader that the broker, now active, can lead."""
    for topic, number, partition in _partitions(image):
        if partition.leader == NO_LEADER and broker_id in partition.replicas:
            yield from _changed(image, topic, number, Wanted(election=last_resort(image, topic)))


def changes_when_directories_fail(
    image: MetadataImage, broker_id: int, directories: tuple[Uuid, ...]
) -> Iterator[PartitionChangeRecord]:
    """What a broker had in log directories that failed it can neither lead nor follow (KIP-858)."""
    for topic, number, partition in _partitions(image):
        if broker_id in partition.isr and partition.directories and partition.directory_of(broker_id) in directories:
            yield from _changed(image, topic, number, Wanted(without=broker_id, election=last_resort(image, topic)))


def changes_for_leaderless(image: MetadataImage) -> Iterator[PartitionChangeRecord]:
    """Unclean elections where a setting allows them: it may have been changed after the last leader went."""
    for topic, number, partition in _partitions(image):
        if partition.leader == NO_LEADER and unclean_election_allowed(image, topic.name):
            yield from _changed(image, topic, number, Wanted(election=Election.UNCLEAN))


def changes_for_preferred_leaders(image: MetadataImage, at_most: int) -> Iterator[PartitionChangeRecord]:
    """Leadership goes back to where it was placed, a bounded number of partitions at a time."""
    found = 0
    for topic, number, partition in _partitions(image):
        if partition.leader == NO_LEADER or has_preferred_leader(partition):
            continue
        for record in _changed(image, topic, number, Wanted(election=Election.PREFERRED)):
            yield record
            found += 1
        if found >= at_most:
            return


def leads_any(image: MetadataImage, broker_id: int) -> bool:
    return any(partition.leader == broker_id for _, _, partition in _partitions(image))


def _partitions(image: MetadataImage) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
    for topic in image.topics.by_id.values():
        for number, partition in topic.partitions.items():
            yield topic, number, partition


def last_resort(image: MetadataImage, topic: TopicImage) -> Election:
    """How far an election that nobody asked for by hand may go."""
    return Election.UNCLEAN if unclean_election_allowed(image, topic.name) else Election.NONE_UNLESS_NEEDED


def _changed(image: MetadataImage, topic: TopicImage, number: int, wanted: Wanted) -> Iterator[PartitionChangeRecord]:
    record = change_partition(image, topic, number, wanted)
    if record is not None:
        yield record
