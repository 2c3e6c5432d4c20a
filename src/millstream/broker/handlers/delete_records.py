"""DeleteRecords: what is below an offset is gone for readers; its files go with the next retention.

The low watermark is the lowest start of the partition's replicas; with one replica in sync it moves at once.
"""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.led_partitions import led_partition
from millstream.metadata.names import INTERNAL_TOPICS
from millstream.protocol.errors import (
    BrokerError,
    InvalidTopic,
    OffsetOutOfRange,
    PolicyViolation,
    TopicAuthorizationFailed,
)
from millstream.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from millstream.security.operations import needs_of
from millstream.settings import CLEANUP_POLICY

(_DELETE,) = needs_of(DeleteRecordsRequest)
UP_TO_HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


@handles(DeleteRecordsRequest, versions="0-2")
def delete_records(request: DeleteRecordsRequest, ctx: Context) -> DeleteRecordsResponse:
    topics = []
    for topic in request.topics:
        # A partition that is named twice is cut at the last offset given, and answered once.
        offsets = {partition.partition_index: partition.offset for partition in topic.partitions}
        results = [_delete(topic.name, index, offset, ctx) for index, offset in offsets.items()]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    return DeleteRecordsResponse(topics=topics)


def _delete(topic: str, index: int, offset: int, ctx: Context) -> DeleteRecordsPartitionResult:
    try:
        if not _DELETE.granted(ctx.allows, topic):
            raise TopicAuthorizationFailed
        low_watermark = _cut(topic, index, offset, ctx)
    except BrokerError as refusal:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=refusal.code
        )
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def _cut(topic: str, index: int, offset: int, ctx: Context) -> int:
    log = led_partition(ctx.broker, topic, index).log
    if topic in INTERNAL_TOPICS:
        raise InvalidTopic(f"the records of {topic} are the cluster's own")
    if "delete" not in ctx.broker.topic_settings(ctx.broker.image, topic)[CLEANUP_POLICY]:
        raise PolicyViolation(f"records of {topic} are kept by key: its cleanup.policy does not include delete")
    if offset == UP_TO_HIGH_WATERMARK:
        offset = log.high_watermark
    if not 0 <= offset <= log.high_watermark:
        raise OffsetOutOfRange(f"{offset} is not between 0 and the high watermark, {log.high_watermark}")
    if offset > log.start_offset:
        log.advance_start_offset(offset)
    return log.start_offset
