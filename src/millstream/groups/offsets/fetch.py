"""OffsetFetch: how far a group has read.

A group that does not exist has read nothing, which is no error. With `require_stable` (KIP-447) a partition on which a
transaction is open is answered with UNSTABLE_OFFSET_COMMIT, and the client asks again. An offset that was committed for
another topic of the same name (version 10 tells them apart by id) is none.

Versions 1 to 7 ask for one group and have an answer of their own shape; `old_response` makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.replicated import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.machine import GroupMachine
    from millstream.protocol.messages.groups.offset_commit import OffsetCommitValue
    from millstream.protocol.uuid import Uuid

TOPIC_IDS_SINCE = 10
MANY_GROUPS_SINCE = 8
GROUP_ERRORS_SINCE = 2
NO_OFFSET = -1
NO_EPOCH = -1


def decide_offset_fetch(
    machine: GroupMachine,
    group: OffsetFetchRequestGroup,
    version: int,
    may_describe: Callable[[str], bool],
    *,
    require_stable: bool,
) -> Decision[OffsetFetchResponseGroup]:
    """Read the offsets of one group. Nothing is written, but the answer waits for what it read."""
    known = machine.group(group.group_id)
    if known is not None:
        known.check_fetch(group.member_id, group.member_epoch)
    reader = _Reader(machine, group.group_id, require_stable=require_stable)
    if group.topics is None:
        topics = reader.everything(version, may_describe)
    else:
        topics = [reader.topic(topic, version, may_describe) for topic in group.topics]
    return Decision(response=OffsetFetchResponseGroup(group_id=group.group_id, topics=topics))


class _Reader:
    """The offsets of one group, as the client may see them."""

    def __init__(self, machine: GroupMachine, group_id: str, *, require_stable: bool) -> None:
        self._image = machine.image
        self._offsets = machine.offsets
        self._group_id = group_id
        self._require_stable = require_stable and machine.offsets.has_open_transactions(group_id)

    def everything(self, version: int, may_describe: Callable[[str], bool]) -> list[OffsetFetchResponseTopics]:
        found = []
        for name, partitions in self._offsets.of_group(self._group_id).items():
            known = self._image.topics.by_name.get(name)
            # With ids, a topic that has none any more cannot be named.
            if not may_describe(name) or (known is None and version >= TOPIC_IDS_SINCE):
                continue
            topic_id = ZERO_UUID if known is None else known.id
            found.append(
                OffsetFetchResponseTopics(
                    name=name,
                    topic_id=topic_id,
                    partitions=[self._partition(name, index, value) for index, value in partitions.items()],
                )
            )
        return found

    def topic(
        self, topic: OffsetFetchRequestTopics, version: int, may_describe: Callable[[str], bool]
    ) -> OffsetFetchResponseTopics:
        name, expected_id = topic.name, ZERO_UUID
        error = None
        if version >= TOPIC_IDS_SINCE:
            known = self._image.topics.by_id.get(topic.topic_id)
            if known is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                name, expected_id = known.name, known.id
        if error is None and not may_describe(name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if error is not None:
            partitions = [_nothing(index, error) for index in topic.partition_indexes]
        else:
            stored = self._offsets.of_group(self._group_id).get(name, {})
            partitions = [
                self._partition(name, index, _of_topic(stored.get(index), expected_id))
                for index in topic.partition_indexes
            ]
        return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)

    def _partition(self, topic: str, index: int, value: OffsetCommitValue | None) -> OffsetFetchResponsePartitions:
        if self._require_stable and self._offsets.is_unstable(self._group_id, topic, index):
            return _nothing(index, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if value is None:
            return _nothing(index, ErrorCode.NONE)
        return OffsetFetchResponsePartitions(
            partition_index=index,
            committed_offset=value.offset,
            committed_leader_epoch=value.leader_epoch,
            metadata=value.metadata,
        )


def _of_topic(value: OffsetCommitValue | None, topic_id: Uuid) -> OffsetCommitValue | None:
    """The offset, unless it is of a topic with another id; an unknown id (all zeros) fits any."""
    if value is None or ZERO_UUID in (topic_id, value.topic_id) or topic_id == value.topic_id:
        return value
    return None


def _nothing(index: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index, committed_offset=NO_OFFSET, committed_leader_epoch=NO_EPOCH, metadata="", error_code=code
    )


def groups_of(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """What is asked, in the shape of the newer versions."""
    if version >= MANY_GROUPS_SINCE:
        return request.groups
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=topics)]


def refuse_fetch(group: OffsetFetchRequestGroup, code: ErrorCode) -> OffsetFetchResponseGroup:
    """An error of the group is told once."""
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=code)


def response_of(
    answers: list[OffsetFetchResponseGroup], asked: list[OffsetFetchRequestGroup], version: int
) -> OffsetFetchResponse:
    """The answer in the shape of the version."""
    if version >= MANY_GROUPS_SINCE:
        return OffsetFetchResponse(groups=answers)
    (answer,) = answers
    topics = answer.topics
    if answer.error_code and version < GROUP_ERRORS_SINCE:
        # Version 1 has no place for the group's error but the partitions.
        topics = [
            OffsetFetchResponseTopics(
                name=topic.name,
                partitions=[_nothing(index, ErrorCode(answer.error_code)) for index in topic.partition_indexes],
            )
            for topic in asked[0].topics or ()
        ]
    return OffsetFetchResponse(
        error_code=answer.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
