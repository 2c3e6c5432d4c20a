"""AssignReplicasToDirs: in which log directory a replica lives (KIP-858). A broker picks one of several and reports it.

A replica in the lost directory (one of the ids with a meaning) is one whose files failed: it leaves the ISR, and
another one leads, as when a whole directory fails. A partition that is gone by now, or has no replica there any more,
is answered with an error and changes nothing: the report came too late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.broker_lifecycle import registered
from millstream.metadata.decision import Decision
from millstream.metadata.leadership import last_resort
from millstream.metadata.partition_change import Wanted, change_partition
from millstream.protocol.errors import BrokerError, NotLeader, UnknownTopicId, UnknownTopicOrPartition
from millstream.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    AssignReplicasToDirsResponseDirectoryData,
    AssignReplicasToDirsResponsePartitionData,
    AssignReplicasToDirsResponseTopicData,
    DirectoryData,
    PartitionData,
    TopicData,
)
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord
from millstream.protocol.uuid import DIRECTORY_LOST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.metadata.image import MetadataImage
    from millstream.protocol.uuid import Uuid


def directories_request(
    broker_id: int, broker_epoch: int, places: Mapping[tuple[Uuid, int], Uuid]
) -> AssignReplicasToDirsRequest:
    """The report of a broker that keeps each (topic id, partition) in that directory."""
    by_directory: dict[Uuid, dict[Uuid, list[PartitionData]]] = {}
    for (topic_id, index), directory in places.items():
        topics = by_directory.setdefault(directory, {})
        topics.setdefault(topic_id, []).append(PartitionData(partition_index=index))
    return AssignReplicasToDirsRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        directories=[
            DirectoryData(
                id=directory,
                topics=[TopicData(topic_id=topic_id, partitions=found) for topic_id, found in topics.items()],
            )
            for directory, topics in by_directory.items()
        ],
    )


def decide_assign_replicas_to_dirs(
    image: MetadataImage, request: AssignReplicasToDirsRequest
) -> Decision[AssignReplicasToDirsResponse]:
    """Note where `broker_id` keeps its replicas; others' stay as they are."""
    registered(image, request.broker_id, request.broker_epoch)
    # A partition that is named twice gets one record, the last one: two of them would not know of each other.
    records: dict[tuple[Uuid, int], PartitionChangeRecord] = {}
    answer = AssignReplicasToDirsResponse(directories=[])
    for directory in request.directories:
        topics = []
        for topic in directory.topics:
            results = []
            for partition in topic.partitions:
                result = AssignReplicasToDirsResponsePartitionData(partition_index=partition.partition_index)
                place = (topic.topic_id, partition.partition_index)
                try:
                    records.pop(place, None)
                    record = _assign(image, request.broker_id, *place, directory.id)
                    if record is not None:
                        records[place] = record
                except BrokerError as refusal:
                    result.error_code = refusal.code
                results.append(result)
            topics.append(AssignReplicasToDirsResponseTopicData(topic_id=topic.topic_id, partitions=results))
        answer.directories.append(AssignReplicasToDirsResponseDirectoryData(id=directory.id, topics=topics))
    return Decision(tuple(records.values()), answer)


def _assign(
    image: MetadataImage, broker_id: int, topic_id: Uuid, index: int, directory: Uuid
) -> PartitionChangeRecord | None:
    topic = image.topics.by_id.get(topic_id)
    if topic is None:
        raise UnknownTopicId(f"there is no topic {topic_id}")
    partition = topic.partitions.get(index)
    if partition is None:
        raise UnknownTopicOrPartition(f"there is no partition {topic.name}-{index}")
    if broker_id not in partition.replicas:
        raise NotLeader(f"broker {broker_id} has no replica of {topic.name}-{index}")
    if not partition.directories or partition.directory_of(broker_id) == directory:
        return None
    directories = [
        directory if replica == broker_id else known
        for replica, known in zip(partition.replicas, partition.directories, strict=True)
    ]
    record = PartitionChangeRecord(partition_id=index, topic_id=topic_id)
    if directory == DIRECTORY_LOST:
        # Its files failed it: it can neither lead nor follow.
        wanted = Wanted(without=broker_id, election=last_resort(image, topic))
        record = change_partition(image, topic, index, wanted) or record
    record.directories = directories
    return record
