"""OffsetForLeaderEpoch: where a leader epoch ended; how consumers and followers notice that a log was cut (KIP-320)."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.led_partitions import led_partition
from millstream.protocol.errors import BrokerError, TopicAuthorizationFailed
from millstream.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from millstream.security.operations import needs_of

(_DESCRIBE,) = needs_of(OffsetForLeaderEpochRequest)


@handles(OffsetForLeaderEpochRequest, versions="2-4")
def offset_for_leader_epoch(request: OffsetForLeaderEpochRequest, ctx: Context) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_look_up(topic.topic, wanted, ctx) for wanted in topic.partitions]
            )
            for topic in request.topics
        ]
    )


def _look_up(topic: str, wanted: OffsetForLeaderPartition, ctx: Context) -> EpochEndOffset:
    try:
        if not _DESCRIBE.granted(ctx.allows, topic):
            raise TopicAuthorizationFailed
        partition = led_partition(ctx.broker, topic, wanted.partition, wanted.current_leader_epoch)
    except BrokerError as refusal:
        return EpochEndOffset(error_code=refusal.code, partition=wanted.partition)
    epoch, end_offset = partition.log.end_offset_for_epoch(wanted.leader_epoch)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
