"""DescribeTopicPartitions: topics page by page, with eligible leader replicas (KIP-966)."""

from __future__ import annotations

from functools import partial

from millstream.broker.addresses import address_for
from millstream.broker.dispatch import Context, handles
from millstream.metadata.describe_topics import View
from millstream.metadata.describe_topics import describe_topic_partitions as describe
from millstream.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from millstream.security.operations import ResourceType, authorized_operations, needs_of
from millstream.settings import MAX_REQUEST_PARTITION_SIZE_LIMIT

(_DESCRIBE,) = needs_of(DescribeTopicPartitionsRequest)


@handles(DescribeTopicPartitionsRequest, versions="0")
def describe_topic_partitions(request: DescribeTopicPartitionsRequest, ctx: Context) -> DescribeTopicPartitionsResponse:
    view = View(
        ctx.broker.image,
        partial(address_for, ctx),
        partial(_DESCRIBE.granted, ctx.allows),
        partial(authorized_operations, ctx.allows, ResourceType.TOPIC),
    )
    return describe(view, request, limit_max=ctx.broker.settings[MAX_REQUEST_PARTITION_SIZE_LIMIT])
