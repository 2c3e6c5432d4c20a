"""The answer to a heartbeat: the member's epoch, and its partitions if it has to be told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.groups.consumer.config import ConsumerConfig
from millstream.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from millstream.groups.consumer.member import ConsumerMember
    from millstream.groups.consumer.partitions import Owned
    from millstream.groups.consumer.step import Step


def heartbeat_answer(step: Step, placed: ConsumerMember, *, tell: bool) -> ConsumerGroupHeartbeatResponse:
    config = ConsumerConfig.of(step.machine, step.group.id)
    return ConsumerGroupHeartbeatResponse(
        member_id=placed.id,
        member_epoch=placed.epoch,
        heartbeat_interval_ms=config.heartbeat_interval_ms,
        assignment=_told(placed.assigned) if tell else None,
    )


def _told(assigned: Owned) -> Assignment:
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
            for topic_id, partitions in assigned.items()
        ]
    )
