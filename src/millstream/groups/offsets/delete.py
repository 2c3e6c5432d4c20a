"""OffsetDelete (KIP-496), and the end of a topic: offsets that are of no use any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.groups.offsets.judging import judge
from millstream.groups.offsets.tombstones import TombstoneBatch, tombstone
from millstream.protocol.errors import ErrorCode, GroupNotFound, InvalidGroupId
from millstream.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from millstream.replicated import Decision, Schedule

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.machine import GroupMachine
    from millstream.metadata.image import MetadataImage, TopicImage

DELETED_TOPICS_TIMER = ("offsets", "topics")


class _Accepted(NamedTuple):
    answer: OffsetDeleteResponsePartition
    topic: str


class OffsetDelete:
    """One request, prepared: `response` already has an entry for every partition."""

    __slots__ = ("_accepted", "_group_id", "response")

    def __init__(self, request: OffsetDeleteRequest, image: MetadataImage, may_read: Callable[[str], bool]) -> None:
        self._group_id = request.group_id
        self._accepted: list[_Accepted] = []
        topics = []
        for topic in request.topics:
            known = image.topics.by_name.get(topic.name)
            answers = judge(topic.partitions, known, OffsetDeleteResponsePartition, allowed=may_read(topic.name))
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=answers))
            self._accepted += [_Accepted(answer, topic.name) for answer in answers if not answer.error_code]
        self.response = OffsetDeleteResponse(topics=topics)

    def decide(self, machine: GroupMachine) -> Decision[OffsetDeleteResponse]:
        """Remove offsets of topics that no member reads."""
        group_id = self._group_id
        if not group_id:
            raise InvalidGroupId
        group = machine.group(group_id)
        if group is None:
            raise GroupNotFound(f"There is no group '{group_id}'.")
        group.check_offset_delete()
        records = []
        for answer, topic in self._accepted:
            index = answer.partition_index
            if group.is_subscribed_to(topic):
                answer.error_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            elif machine.offsets.get(group_id, topic, index) or machine.offsets.is_unstable(group_id, topic, index):
                records.append(tombstone(group_id, topic, index))
        return Decision(records=tuple(records), response=self.response)


def refuse_delete(code: ErrorCode) -> OffsetDeleteResponse:
    """An error of the group is told once."""
    return OffsetDeleteResponse(error_code=code, topics=[])


def decide_topics_deleted(machine: GroupMachine, topics: tuple[TopicImage, ...]) -> Decision[None]:
    """Forget the offsets of topics that are gone, as many as one batch holds; a timer goes on with the rest.

    Offsets that were committed for a topic of the same name and another id stay: that topic was made since.
    """
    batch = TombstoneBatch()
    for position, topic in enumerate(topics):
        for group_id, partition in machine.offsets.of_topic(topic.name, topic.id):
            if batch.is_full:
                machine.deleted_topics = topics[position:]
                return Decision(records=tuple(batch.records), timers=(Schedule(DELETED_TOPICS_TIMER, 0),))
            batch.add(group_id, topic.name, partition)
    machine.deleted_topics = ()
    return Decision(records=tuple(batch.records))
