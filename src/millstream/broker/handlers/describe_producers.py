"""DescribeProducers: the producers that wrote to a partition lately, as its leader knows them (KIP-664)."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.led_partitions import led_partition
from millstream.protocol.errors import BrokerError, TopicAuthorizationFailed
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
    try:
        if not _READ.granted(ctx.allows, topic):
            raise TopicAuthorizationFailed
        log = led_partition(ctx.broker, topic, index).log
    except BrokerError as refusal:
        return PartitionResponse(
            partition_index=index, error_code=refusal.code, error_message=refusal.message, active_producers=[]
        )
    producers = [
        ProducerState(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            last_sequence=producer.last_sequence,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            current_txn_start_offset=producer.txn_first_offset,
        )
        for producer in log.producers.all()
    ]
    return PartitionResponse(partition_index=index, active_producers=producers)
