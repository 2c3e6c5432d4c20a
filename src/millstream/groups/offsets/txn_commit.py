"""TxnOffsetCommit: offsets that count once the producer's transaction commits.

The records carry the producer's id and epoch; `CommittedOffsets` keeps them as pending until the marker is written.
Whether the transaction may write here at all (it was added by AddOffsetsToTxn, or is verified now) is settled before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.groups.offsets.commit import VALUE_VERSION
from millstream.groups.offsets.judging import is_longer_than, judge
from millstream.protocol.errors import ErrorCode, IllegalGeneration, StaleMemberEpoch
from millstream.protocol.messages.groups.offset_commit import OffsetCommitKey, OffsetCommitValue
from millstream.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.replicated import Decision, Record
from millstream.settings import OFFSET_METADATA_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.groups.machine import GroupMachine
    from millstream.metadata.image import MetadataImage

# Producers before this version may fail for good on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296).
LOADING_UNDERSTOOD_SINCE = 2


class _Accepted(NamedTuple):
    answer: TxnOffsetCommitResponsePartition
    topic: str
    partition: TxnOffsetCommitRequestPartition


class TxnOffsetCommit:
    """One request, prepared: `response` already has an entry for every partition."""

    __slots__ = ("_accepted", "_request", "_version", "response")

    def __init__(
        self, request: TxnOffsetCommitRequest, version: int, image: MetadataImage, may_read: Callable[[str], bool]
    ) -> None:
        self._request = request
        self._version = version
        self._accepted: list[_Accepted] = []
        topics = []
        for topic in request.topics:
            known = image.topics.by_name.get(topic.name)
            answers = judge(topic.partitions, known, TxnOffsetCommitResponsePartition, allowed=may_read(topic.name))
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
            self._accepted += [
                _Accepted(answer, topic.name, partition)
                for answer, partition in zip(answers, topic.partitions, strict=True)
                if not answer.error_code
            ]
        self.response = TxnOffsetCommitResponse(topics=topics)

    @property
    def is_void(self) -> bool:
        """Whether there is nothing left to ask the group about."""
        return not self._accepted

    def refuse(self, code: ErrorCode) -> TxnOffsetCommitResponse:
        """The coordinator refused all that had been accepted."""
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and self._version < LOADING_UNDERSTOOD_SINCE:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        for accepted in self._accepted:
            accepted.answer.error_code = code
        return self.response

    def decide(self, machine: GroupMachine, now_ms: int) -> Decision[TxnOffsetCommitResponse]:
        """Store what the group allows, as part of the transaction."""
        try:
            return self._decide(machine, now_ms)
        except StaleMemberEpoch as stale:
            # Producers know generations only.
            raise IllegalGeneration from stale

    def _decide(self, machine: GroupMachine, now_ms: int) -> Decision[TxnOffsetCommitResponse]:
        request = self._request
        group = machine.group(request.group_id)
        check_partition = None
        if group is not None:
            check_partition = group.check_commit(
                request.member_id,
                request.group_instance_id,
                request.generation_id,
                transactional=True,
                version=self._version,
            )
        elif request.generation_id >= 0:
            raise IllegalGeneration
        metadata_max = machine.settings[OFFSET_METADATA_MAX_BYTES]
        records = []
        for answer, topic, partition in self._accepted:
            metadata = partition.committed_metadata or ""
            if is_longer_than(metadata, metadata_max):
                answer.error_code = ErrorCode.OFFSET_METADATA_TOO_LARGE
                continue
            if check_partition is not None:
                check_partition(topic, ZERO_UUID, partition.partition_index)
            records.append(
                Record(
                    OffsetCommitKey(group=request.group_id, topic=topic, partition=partition.partition_index),
                    OffsetCommitValue(
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=metadata,
                        commit_timestamp=now_ms,
                    ),
                    VALUE_VERSION,
                )
            )
        return Decision(
            records=tuple(records),
            response=self.response,
            transaction=(request.producer_id, request.producer_epoch),
        )


def refuse_txn_commit(request: TxnOffsetCommitRequest, code: ErrorCode) -> TxnOffsetCommitResponse:
    """The same error for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
