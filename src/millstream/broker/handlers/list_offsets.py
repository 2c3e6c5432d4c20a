"""ListOffsets: the offset for a time, or for one of the special timestamps.

A consumer sees up to the high watermark, or with read_committed up to the last stable offset; a follower sees the
whole log. Just after an election the high watermark may lag behind what the leader's predecessor had told: until it
has reached the start of the leader's epoch, a consumer is asked to try again rather than shown an older end.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.broker.led_partitions import led_partition
from millstream.protocol.errors import (
    BrokerError,
    ErrorCode,
    InvalidRequest,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from millstream.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.log.log import Log
    from millstream.log.lookup import FoundOffset

(_DESCRIBE,) = needs_of(ListOffsetsRequest)

LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5
EARLIEST_PENDING_UPLOAD = -6
# The version from which a special timestamp may be asked for.
_SINCE = {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING_UPLOAD: 11}

CONSUMER = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
OFFSET_NOT_AVAILABLE_SINCE = 5


class OffsetNotAvailable(BrokerError, code=ErrorCode.OFFSET_NOT_AVAILABLE):
    """The high watermark has not reached the start of the leader's epoch yet."""


class LeaderNotAvailable(BrokerError, code=ErrorCode.LEADER_NOT_AVAILABLE):
    """The same, for versions that don't know the code."""


@handles(ListOffsetsRequest, versions="1-11")
def list_offsets(request: ListOffsetsRequest, ctx: Context) -> ListOffsetsResponse:
    topics = []
    for topic in request.topics:
        mentions = Counter(partition.partition_index for partition in topic.partitions)
        wanted = {partition.partition_index: partition for partition in topic.partitions}
        answers = [
            _look_up(topic.name, partition, request, ctx, named_twice=mentions[index] > 1)
            for index, partition in wanted.items()
        ]
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _look_up(
    topic: str, wanted: ListOffsetsPartition, request: ListOffsetsRequest, ctx: Context, *, named_twice: bool
) -> ListOffsetsPartitionResponse:
    answer = ListOffsetsPartitionResponse(partition_index=wanted.partition_index)
    try:
        if not _DESCRIBE.granted(ctx.allows, topic):
            raise TopicAuthorizationFailed
        if named_twice or request.isolation_level not in {READ_UNCOMMITTED, READ_COMMITTED}:
            raise InvalidRequest
        if wanted.timestamp < 0 and ctx.version < _SINCE.get(wanted.timestamp, ctx.version + 1):
            raise UnsupportedVersion
        partition = led_partition(ctx.broker, topic, wanted.partition_index, wanted.current_leader_epoch)
        found = _find(partition.log, wanted.timestamp, request, ctx.version)
    except BrokerError as refusal:
        answer.error_code = refusal.code
        return answer
    if found is not None:
        answer.timestamp, answer.offset, answer.leader_epoch = found.timestamp, found.offset, found.leader_epoch
    return answer


def _find(log: Log, timestamp: int, request: ListOffsetsRequest, version: int) -> FoundOffset | None:
    if timestamp in {EARLIEST, EARLIEST_LOCAL}:
        # Without tiered storage all that there is, is local.
        return log.earliest()
    if timestamp in {LATEST_TIERED, EARLIEST_PENDING_UPLOAD}:
        return None
    if request.replica_id != CONSUMER:
        end = log.end_offset
    else:
        end = log.last_stable_offset if request.isolation_level == READ_COMMITTED else log.high_watermark
    if timestamp == LATEST:
        _check_caught_up(log, request, version)
        return log.latest(end)
    found = log.offset_of_max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is None or found.offset < end:
        return found
    _check_caught_up(log, request, version)
    return None


def _check_caught_up(log: Log, request: ListOffsetsRequest, version: int) -> None:
    """The high watermark must have reached the leader's epoch; an open transaction may hold the stable offset back."""
    epoch = log.epochs.latest
    if request.replica_id == CONSUMER and epoch is not None and epoch.start_offset > log.high_watermark:
        raise OffsetNotAvailable if version >= OFFSET_NOT_AVAILABLE_SINCE else LeaderNotAvailable
