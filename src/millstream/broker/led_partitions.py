"""Finding the partition that a request is about, if this broker leads it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.protocol.errors import NotLeader, UnknownTopicOrPartition

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.broker.partition import Partition


def led_partition(broker: Node, topic: str, index: int, current_leader_epoch: int = -1) -> Partition:
    """The partition; NotLeader, a wrong leader epoch or UnknownTopicOrPartition are raised as the client needs them:
    the first sends it to the leader, the last to look again."""
    partition = broker.partitions.get(topic, index)
    if partition is not None:
        partition.leading(current_leader_epoch)
        return partition
    known = broker.image.topics.by_name.get(topic)
    if known is not None and index in known.partitions:
        raise NotLeader(f"this broker does not host {topic}-{index}")
    raise UnknownTopicOrPartition(f"there is no partition {topic}-{index}")
