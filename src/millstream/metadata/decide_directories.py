"""In which log directory a replica lives (KIP-858): the broker picks one of several and reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.decision import Decision
from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.metadata.image import MetadataImage
    from millstream.metadata.record_types import MetadataRecord
    from millstream.protocol.uuid import Uuid


def decide_assign_directories(
    image: MetadataImage, broker_id: int, places: Mapping[tuple[Uuid, int], Uuid]
) -> Decision[None]:
    """Note for each (topic id, partition) in which directory `broker_id` keeps it; others' replicas stay as they are.

    A partition that is gone by now, or has no replica there any more, is passed over: the report came too late.
    """
    records: list[MetadataRecord] = []
    for (topic_id, index), directory in places.items():
        partition = image.topics.partition(topic_id, index)
        if partition is None or broker_id not in partition.replicas or not partition.directories:
            continue
        if partition.directory_of(broker_id) == directory:
            continue
        directories = [
            directory if replica == broker_id else known
            for replica, known in zip(partition.replicas, partition.directories, strict=True)
        ]
        records.append(PartitionChangeRecord(partition_id=index, topic_id=topic_id, directories=directories))
    return Decision(tuple(records), None)
