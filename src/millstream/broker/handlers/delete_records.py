"""DeleteRecords: what is below an offset is gone for readers; its files go with the next retention.

The low watermark is the lowest start of the partition's live replicas. Followers learn the new start with their next
fetch and tell that they have it with the one after; the answer waits for them, or for its time to be up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.led_partitions import led_partition
from millstream.metadata.names import INTERNAL_TOPICS
from millstream.protocol.errors import (
    BrokerError,
    ErrorCode,
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

if TYPE_CHECKING:
    from millstream.broker.partition import Partition

(_DELETE,) = needs_of(DeleteRecordsRequest)
UP_TO_HIGH_WATERMARK = -1
NO_LOW_WATERMARK = -1


@handles(DeleteRecordsRequest, versions="0-2")
def delete_records(request: DeleteRecordsRequest, ctx: Context) -> DeleteRecordsResponse | Deferred:
    topics = []
    waiting: list[_Waiting] = []
    for topic in request.topics:
        # A partition that is named twice is cut at the last offset given, and answered once.
        offsets = {partition.partition_index: partition.offset for partition in topic.partitions}
        results = [_delete(topic.name, index, offset, ctx, waiting) for index, offset in offsets.items()]
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=results))
    response = DeleteRecordsResponse(topics=topics)
    if waiting:
        return _FollowersCut(request.timeout_ms, response, waiting, ctx).deferred
    return response


def _delete(topic: str, index: int, offset: int, ctx: Context, waiting: list[_Waiting]) -> DeleteRecordsPartitionResult:
    try:
        if not _DELETE.granted(ctx.allows, topic):
            raise TopicAuthorizationFailed
        partition = _cut(topic, index, offset, ctx)
    except BrokerError as refusal:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=NO_LOW_WATERMARK, error_code=refusal.code
        )
    result = DeleteRecordsPartitionResult(partition_index=index, low_watermark=partition.log.start_offset)
    if _low_watermark(partition, ctx) < partition.log.start_offset:
        waiting.append((partition, partition.log.start_offset, result))
    return result


def _cut(topic: str, index: int, offset: int, ctx: Context) -> Partition:
    partition = led_partition(ctx.broker, topic, index)
    log = partition.log
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
        partition.start_moved()
    return partition


# --- followers

# A partition, the start that its followers shall reach, and its entry in the answer.
_Waiting = tuple["Partition", int, DeleteRecordsPartitionResult]


def _low_watermark(partition: Partition, ctx: Context) -> int:
    """Where the logs of all live replicas have begun."""
    start = partition.log.start_offset
    assert partition.leader is not None
    for follower in partition.leader.followers.values():
        broker = ctx.broker.image.brokers.get(follower.id)
        if broker is not None and not broker.fenced:
            start = min(start, follower.start_offset)
    return start


class _FollowersCut:
    """An answer that waits until the followers' logs begin where the leader's does."""

    def __init__(self, timeout_ms: int, response: DeleteRecordsResponse, waiting: list[_Waiting], ctx: Context) -> None:
        self._response = response
        self._waiting = waiting
        self._ctx = ctx
        self._watched = [partition for partition, _, _ in waiting]
        self._timer = ctx.broker.loop.call_later(max(0, timeout_ms) / 1000, self._time_is_up)
        self.deferred = Deferred(on_abandon=self._stop)
        for partition in self._watched:
            partition.watch_low_watermark(self._look)

    def _look(self) -> None:
        for entry in self._waiting.copy():
            partition, wanted, result = entry
            if partition.leader is None:
                _refuse(result, ErrorCode.NOT_LEADER_OR_FOLLOWER)
            elif _low_watermark(partition, self._ctx) < wanted:
                continue
            self._waiting.remove(entry)
        if not self._waiting:
            self._finish()

    def _time_is_up(self) -> None:
        for _, _, result in self._waiting:
            _refuse(result, ErrorCode.REQUEST_TIMED_OUT)
        self._finish()

    def _finish(self) -> None:
        self._stop()
        self.deferred.finish(self._response)

    def _stop(self) -> None:
        self._timer.cancel()
        for partition in self._watched:
            partition.unwatch_low_watermark(self._look)


def _refuse(result: DeleteRecordsPartitionResult, code: ErrorCode) -> None:
    result.error_code = code
    result.low_watermark = NO_LOW_WATERMARK
