"""Replaying the records of topics and partitions.

A touched topic is drafted: its partitions are copied once into a plain dictionary, which becomes the new topic's when
the run of records ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from millstream.metadata.delta_errors import BrokenMetadata
from millstream.metadata.image import PartitionImage, TopicImage, Topics
from millstream.metadata.image_map import GONE, Gone, SharedMap
from millstream.protocol.uuid import DIRECTORY_MIGRATING, Uuid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.protocol.messages.metadata.clear_elr import ClearElrRecord
    from millstream.protocol.messages.metadata.partition import PartitionRecord
    from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
    from millstream.protocol.messages.metadata.remove_topic import RemoveTopicRecord
    from millstream.protocol.messages.metadata.topic import TopicRecord

# PartitionChangeRecord's defaults, which leave a field as it is.
NO_LEADER_CHANGE = -2
NO_RECOVERY_STATE_CHANGE = -1
EVERY_TOPIC = ""


class _Draft:
    """A topic while records change it; `touched` keeps the order of the partitions' first change."""

    __slots__ = ("id", "name", "partitions", "touched")

    def __init__(self, name: str, topic_id: Uuid, partitions: dict[int, PartitionImage]) -> None:
        self.name = name
        self.id = topic_id
        self.partitions = partitions
        self.touched: dict[int, None] = {}


class TopicDifferences(NamedTuple):
    """What `Changes` says of topics."""

    deleted: tuple[TopicImage, ...]
    created: tuple[TopicImage, ...]
    partitions_changed: Mapping[str, tuple[int, ...]]


class TopicChanges:
    """The topics of one image, and what a run of records changes in them."""

    def __init__(self, topics: Topics) -> None:
        self._before = topics
        self._drafts: dict[Uuid, _Draft] = {}
        self._deleted: dict[Uuid, TopicImage] = {}
        self._names: dict[str, Uuid | Gone] = {}

    def create(self, record: TopicRecord) -> None:
        if self._id_of(record.name) is not None:
            raise BrokenMetadata(f"topic {record.name} is created a second time")
        self._drafts[record.topic_id] = _Draft(record.name, record.topic_id, {})
        self._names[record.name] = record.topic_id

    def remove(self, record: RemoveTopicRecord) -> str:
        """Remove a topic and tell its name."""
        draft = self._drafts.pop(record.topic_id, None)
        before = self._before.by_id.get(record.topic_id)
        if record.topic_id in self._deleted or (draft is None and before is None):
            raise BrokenMetadata(f"removal of topic {record.topic_id}, which does not exist")
        if before is not None:
            self._deleted[record.topic_id] = before
        name = before.name if before is not None else draft.name  # type: ignore[union-attr]  # one of them exists
        self._names[name] = GONE
        return name

    def partition(self, record: PartitionRecord) -> None:
        draft = self._draft(record.topic_id)
        draft.partitions[record.partition_id] = PartitionImage(
            replicas=tuple(record.replicas),
            isr=tuple(record.isr),
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            removing=tuple(record.removing_replicas),
            adding=tuple(record.adding_replicas),
            directories=_directories(record.directories, len(record.replicas)),
            elr=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
            leader_recovery_state=record.leader_recovery_state,
        )
        draft.touched[record.partition_id] = None

    def change_partition(self, record: PartitionChangeRecord) -> None:
        draft = self._draft(record.topic_id)
        before = draft.partitions.get(record.partition_id)
        if before is None:
            raise BrokenMetadata(f"a change to {draft.name}-{record.partition_id}, which does not exist")
        draft.partitions[record.partition_id] = changed_partition(before, record)
        draft.touched[record.partition_id] = None

    def clear_elr(self, record: ClearElrRecord) -> None:
        if record.topic_name == EVERY_TOPIC:
            topic_ids = [topic_id for topic_id in self._before.by_id if topic_id not in self._deleted]
            topic_ids += [topic_id for topic_id in self._drafts if topic_id not in self._before.by_id]
        else:
            topic_id = self._id_of(record.topic_name)
            if topic_id is None:
                raise BrokenMetadata(f"eligible leaders of topic {record.topic_name}, which does not exist")
            topic_ids = [topic_id]
        for topic_id in topic_ids:
            self._clear_elr_of(topic_id)

    def finish(self) -> tuple[Topics, TopicDifferences]:
        created: list[TopicImage] = []
        changed: dict[str, tuple[int, ...]] = {}
        by_id: dict[Uuid, TopicImage | Gone] = dict.fromkeys(self._deleted, GONE)
        for draft in self._drafts.values():
            topic = by_id[draft.id] = TopicImage(name=draft.name, id=draft.id, partitions=draft.partitions)
            if draft.id in self._before.by_id:
                changed[draft.name] = tuple(draft.touched)
            else:
                created.append(topic)
        differences = TopicDifferences(tuple(self._deleted.values()), tuple(created), changed)
        if not by_id:
            return self._before, differences
        by_name: dict[str, TopicImage | Gone] = {topic.name: GONE for topic in self._deleted.values()}
        by_name.update((topic.name, topic) for topic in by_id.values() if not isinstance(topic, Gone))
        return Topics(
            _shared(self._before.by_name).with_changes(by_name), _shared(self._before.by_id).with_changes(by_id)
        ), differences

    def _id_of(self, name: str) -> Uuid | None:
        found = self._names.get(name)
        if found is not None:
            return None if isinstance(found, Gone) else found
        topic = self._before.by_name.get(name)
        return None if topic is None else topic.id

    def _draft(self, topic_id: Uuid) -> _Draft:
        draft = self._drafts.get(topic_id)
        if draft is None:
            topic = self._before.by_id.get(topic_id)
            if topic is None or topic_id in self._deleted:
                raise BrokenMetadata(f"a partition of topic {topic_id}, which does not exist")
            draft = self._drafts[topic_id] = _Draft(topic.name, topic_id, dict(topic.partitions))
        return draft

    def _clear_elr_of(self, topic_id: Uuid) -> None:
        draft = self._drafts.get(topic_id)
        partitions = draft.partitions if draft is not None else self._before.by_id[topic_id].partitions
        for number in [n for n, partition in partitions.items() if partition.elr or partition.last_known_elr]:
            draft = self._draft(topic_id)
            draft.partitions[number] = msgspec.structs.replace(draft.partitions[number], elr=(), last_known_elr=())
            draft.touched[number] = None


def changed_partition(before: PartitionImage, record: PartitionChangeRecord) -> PartitionImage:
    """The partition after a change record: every change raises the partition epoch, a stated leader the leader epoch,
    even if it is the leader that was (that is how a new epoch starts)."""
    replicas = before.replicas if record.replicas is None else tuple(record.replicas)
    new_leader = record.leader != NO_LEADER_CHANGE
    recovery = record.leader_recovery_state
    return PartitionImage(
        replicas=replicas,
        isr=before.isr if record.isr is None else tuple(record.isr),
        leader=record.leader if new_leader else before.leader,
        leader_epoch=before.leader_epoch + new_leader,
        partition_epoch=before.partition_epoch + 1,
        removing=before.removing if record.removing_replicas is None else tuple(record.removing_replicas),
        adding=before.adding if record.adding_replicas is None else tuple(record.adding_replicas),
        directories=_directories(
            before.directories if record.directories is None else record.directories, len(replicas)
        ),
        elr=before.elr if record.eligible_leader_replicas is None else tuple(record.eligible_leader_replicas),
        last_known_elr=before.last_known_elr if record.last_known_elr is None else tuple(record.last_known_elr),
        leader_recovery_state=before.leader_recovery_state if recovery == NO_RECOVERY_STATE_CHANGE else recovery,
    )


def _directories(given: Sequence[Uuid], replicas: int) -> tuple[Uuid, ...]:
    # Records from before KIP-858 name no directories: Kafka reads them as "still to be told".
    if not given:
        return (DIRECTORY_MIGRATING,) * replicas
    if len(given) != replicas:
        raise BrokenMetadata(f"{len(given)} directories for {replicas} replicas")
    return tuple(given)


def _shared(mapping: Mapping[str, TopicImage] | Mapping[Uuid, TopicImage]) -> SharedMap:  # type: ignore[type-arg]
    return mapping if isinstance(mapping, SharedMap) else SharedMap(mapping)
