"""OffsetCommit: how far a group has read.

A commit is prepared against the metadata first: partitions that do not exist, or that the client may not read, are
answered for themselves, and the group is only asked about the rest. What the group then says (a stale generation, a
member it does not know) goes to all of these.

An offset is stored in the version that Kafka 4.3 writes: 4, with the topic's id; 1 where an old client asked for a
retention time, the only version that has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.groups.offsets.judging import is_longer_than, judge
from millstream.protocol.errors import ErrorCode, GroupNotFound, IllegalGeneration
from millstream.protocol.messages.groups.offset_commit import OffsetCommitKey, OffsetCommitValue
from millstream.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from millstream.protocol.uuid import ZERO_UUID, Uuid
from millstream.replicated import Decision, Record
from millstream.settings import OFFSET_METADATA_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.machine import GroupMachine
    from millstream.metadata.image import MetadataImage

TOPIC_IDS_SINCE = 10
MEMBER_EPOCHS_SINCE = 9
VALUE_VERSION = 4
VALUE_VERSION_WITH_EXPIRY = 1
NO_RETENTION = -1
INT64_MAX = 2**63 - 1


class _Accepted(NamedTuple):
    """A partition that exists and may be committed to: its place in the answer, and what to store."""

    answer: OffsetCommitResponsePartition
    topic: str
    topic_id: Uuid
    partition: OffsetCommitRequestPartition


class OffsetCommit:
    """One request, prepared: `response` already has an entry for every partition."""

    __slots__ = ("_accepted", "_request", "_version", "response")

    def __init__(
        self, request: OffsetCommitRequest, version: int, image: MetadataImage, may_read: Callable[[str], bool]
    ) -> None:
        self._request = request
        self._version = version
        self._accepted: list[_Accepted] = []
        topics = []
        for topic in request.topics:
            if version >= TOPIC_IDS_SINCE:
                known = image.topics.by_id.get(topic.topic_id)
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
            else:
                known = image.topics.by_name.get(topic.name)
                unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            name = topic.name if known is None else known.name
            # An id tells nothing by itself.
            allowed = (known is None and version >= TOPIC_IDS_SINCE) or may_read(name)
            answers = judge(topic.partitions, known, OffsetCommitResponsePartition, allowed=allowed, unknown=unknown)
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers))
            if known is not None:
                self._accepted += [
                    _Accepted(answer, name, known.id, partition)
                    for answer, partition in zip(answers, topic.partitions, strict=True)
                    if not answer.error_code
                ]
        self.response = OffsetCommitResponse(topics=topics)

    @property
    def is_void(self) -> bool:
        """Whether there is nothing left to ask the group about."""
        return not self._accepted

    def refuse(self, code: ErrorCode) -> OffsetCommitResponse:
        """The coordinator refused all that had been accepted."""
        for accepted in self._accepted:
            accepted.answer.error_code = code
        return self.response

    def decide(self, machine: GroupMachine, now_ms: int) -> Decision[OffsetCommitResponse]:
        """Store what the group allows."""
        request = self._request
        group_id, generation = request.group_id, request.generation_id_or_member_epoch
        group = machine.group(group_id)
        check_partition = None
        if group is not None:
            check_partition = group.check_commit(
                request.member_id, request.group_instance_id, generation, transactional=False, version=self._version
            )
        elif generation >= 0:
            if self._version >= MEMBER_EPOCHS_SINCE:
                raise GroupNotFound(f"There is no group '{group_id}'.")
            raise IllegalGeneration
        expire_timestamp, value_version = -1, VALUE_VERSION
        if request.retention_time_ms != NO_RETENTION:
            expire_timestamp = min(now_ms + request.retention_time_ms, INT64_MAX)
            value_version = VALUE_VERSION_WITH_EXPIRY
        metadata_max = machine.settings[OFFSET_METADATA_MAX_BYTES]
        records = []
        for answer, topic, topic_id, partition in self._accepted:
            metadata = partition.committed_metadata or ""
            if is_longer_than(metadata, metadata_max):
                answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            if check_partition is not None:
                check_partition(topic, topic_id, partition.partition_index)
            records.append(
                Record(
                    OffsetCommitKey(group=group_id, topic=topic, partition=partition.partition_index),
                    OffsetCommitValue(
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=metadata,
                        commit_timestamp=now_ms,
                        expire_timestamp=expire_timestamp,
                        # What the version cannot say must not be known here either: a replay would not know it.
                        topic_id=topic_id if value_version == VALUE_VERSION else ZERO_UUID,
                    ),
                    value_version,
                )
            )
        return Decision(
            records=tuple(records),
            response=self.response,
            timers=() if group is None else group.committed(request.member_id),
        )


def refuse_commit(request: OffsetCommitRequest, code: ErrorCode) -> OffsetCommitResponse:
    """The same error for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
