"""AlterPartitionReassignments and ListPartitionReassignments: moving partitions between brokers.

A move to `target` first holds both: replicas = target and whoever leaves, adding = who comes, removing = who leaves.
It is complete when all of the target is in sync (`partition_change.py`), which for a mere change of order, or where
nothing comes in, is at once. A cancelled move goes back to the replicas from before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.assignments import check_assignment
from millstream.metadata.decision import Decision
from millstream.metadata.partition_change import Wanted, change_partition
from millstream.protocol.errors import (
    BrokerError,
    ErrorCode,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    UnknownTopicOrPartition,
)
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from millstream.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.metadata.image import MetadataImage, PartitionImage, TopicImage
    from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord


class NoReassignmentInProgress(BrokerError, code=ErrorCode.NO_REASSIGNMENT_IN_PROGRESS):
    """The partition is not being moved."""


def decide_alter_reassignments(
    image: MetadataImage, request: AlterPartitionReassignmentsRequest
) -> Decision[AlterPartitionReassignmentsResponse]:
    """Start, change or cancel moves; one bad partition does not stop the others."""
    # A partition that is named twice gets one record, the last one: two of them would not know of each other.
    records: dict[tuple[str, int], PartitionChangeRecord] = {}
    responses: list[ReassignableTopicResponse] = []
    for topic in request.topics:
        answers: list[ReassignablePartitionResponse] = []
        for wish in topic.partitions:
            answer = ReassignablePartitionResponse(partition_index=wish.partition_index, error_message=None)
            try:
                record = _reassign(image, topic.name, wish, resize=request.allow_replication_factor_change)
            except BrokerError as refusal:
                answer.error_code, answer.error_message = refusal.code, refusal.message
            else:
                records.pop((topic.name, wish.partition_index), None)
                if record is not None:
                    records[topic.name, wish.partition_index] = record
            answers.append(answer)
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=answers))
    response = AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_message=None,
        responses=responses,
    )
    return Decision(tuple(records.values()), response)


def list_reassignments(
    image: MetadataImage, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    """The moves that go on, of all partitions or of those asked for; what is unknown is left out."""
    topics: list[OngoingTopicReassignment] = []
    if request.topics is None:
        for topic in image.topics.by_name.values():
            _list_topic(topic, topic.partitions, topics)
    else:
        for asked in request.topics:
            found = image.topics.by_name.get(asked.name)
            if found is not None:
                _list_topic(found, asked.partition_indexes, topics)
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _list_topic(topic: TopicImage, partitions: Iterable[int], into: list[OngoingTopicReassignment]) -> None:
    moving = [
        OngoingPartitionReassignment(
            partition_index=number,
            replicas=list(partition.replicas),
            adding_replicas=list(partition.adding),
            removing_replicas=list(partition.removing),
        )
        for number in partitions
        if (partition := topic.partitions.get(number)) is not None and (partition.adding or partition.removing)
    ]
    if moving:
        into.append(OngoingTopicReassignment(name=topic.name, partitions=moving))


def _reassign(
    image: MetadataImage, name: str, wish: ReassignablePartition, *, resize: bool
) -> PartitionChangeRecord | None:
    topic = image.topics.by_name.get(name)
    partition = None if topic is None else topic.partitions.get(wish.partition_index)
    if topic is None or partition is None:
        raise UnknownTopicOrPartition(f"There is no partition {name}-{wish.partition_index}.")
    wanted = _cancelled(partition) if wish.replicas is None else _moved(image, partition, wish.replicas, resize=resize)
    return change_partition(image, topic, wish.partition_index, wanted)


def _moved(image: MetadataImage, partition: PartitionImage, target: list[int], *, resize: bool) -> Wanted:
    check_assignment(image, target)
    before = _before_move(partition)
    if not resize and len(target) != len(before):
        raise InvalidReplicationFactor(
            f"The partition has {len(before)} replica(s) and would have {len(target)},"
            " but the request does not allow a change of the replication factor."
        )
    leaving = tuple(replica for replica in before if replica not in target)
    coming = tuple(replica for replica in target if replica not in before)
    meanwhile = (*target, *leaving)
    if partition.isr and not any(replica in meanwhile for replica in partition.isr):
        raise InvalidReplicaAssignment(
            "No replica that is in sync would be left: an earlier move has to complete first."
        )
    return Wanted(replicas=meanwhile, adding=coming, removing=leaving)


def _cancelled(partition: PartitionImage) -> Wanted:
    if not partition.adding and not partition.removing:
        raise NoReassignmentInProgress
    before = _before_move(partition)
    in_sync = tuple(replica for replica in partition.isr if replica in before)
    if not in_sync:
        raise InvalidReplicaAssignment("The move cannot be cancelled: of the replicas from before it, none is in sync.")
    return Wanted(replicas=before, isr=in_sync, adding=(), removing=())


def _before_move(partition: PartitionImage) -> tuple[int, ...]:
    return tuple(replica for replica in partition.replicas if replica not in partition.adding)
