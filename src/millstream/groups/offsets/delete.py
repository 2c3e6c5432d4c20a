"""OffsetDelete (KIP-496), and the end of a topic: offsets that are of no use any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.groups.offsets.store import tombstone
from millstream.protocol.errors import ErrorCode, GroupNotFound, InvalidGroupId
from millstream.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.replicated import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from millstream.groups.machine import GroupMachine
    from millstream.metadata.image import MetadataImage, TopicImage


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
            allowed = may_read(topic.name)
            partitions = []
            for partition in topic.partitions:
                answer = OffsetDeleteResponsePartition(partition_index=partition.partition_index)
                partitions.append(answer)
                if not allowed:
                    answer.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                elif known is None or partition.partition_index not in known.partitions:
                    answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    self._accepted.append(_Accepted(answer, topic.name))
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
        self.response = OffsetDeleteResponse(topics=topics)

    @property
    def is_void(self) -> bool:
        """Whether there is nothing left to ask the group about."""
        return not self._accepted

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


def decide_topics_deleted(
    machine: GroupMachine, topics: Iterable[TopicImage], *, records_max: int
) -> Decision[None]:
    """Forget the offsets of topics that are gone, at most so many at once.

    Offsets that were committed for a topic of the same name and another id stay: that topic was made since.
    """
    records = []
    for topic in topics:
        for group_id, index in machine.offsets.of_topic(topic.name, topic.id):
            records.append(tombstone(group_id, topic.name, index))
            if len(records) == records_max:
                return Decision(records=tuple(records))
    return Decision(records=tuple(records))
