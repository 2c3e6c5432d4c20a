"""DescribeProducers: the producers that wrote to a partition lately, as any of its replicas knows them (KIP-664)."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.leader_hints import why_not_hosted
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from millstream.security.operations import needs_of

(_READ,) = needs_of(DescribeProducersRequest)


@handles(DescribeProducersRequest, versions="0")
def describe_producers(request: DescribeProducersRequest, ctx: Context) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name, partitions=[_describe(topic.name, index, ctx) for index in topic.partition_indexes]
            )
            for topic in request.topics
        ]
    )


def _describe(topic: str, index: int, ctx: Context) -> PartitionResponse:
    if not _READ.granted(ctx.allows, topic):
        return _refused(index, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = ctx.broker.partitions.get(topic, index)
    if partition is None:
        return _refused(index, why_not_hosted(ctx.broker, topic, index))
    producers = [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.txn_first_offset,
        )
        for producer in partition.log.producers.all()
    ]
    return PartitionResponse(partition_index=index, active_producers=producers)


def _refused(index: int, code: ErrorCode) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=code.meaning, active_producers=[])
