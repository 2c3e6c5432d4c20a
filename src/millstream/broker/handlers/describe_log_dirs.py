"""DescribeLogDirs: how much each log directory holds, by partition, and how much room is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.log.directory import LogDirectory
    from millstream.log.log import Log

(_DESCRIBE,) = needs_of(DescribeLogDirsRequest)


@handles(DescribeLogDirsRequest, versions="1-5")
def describe_log_dirs(request: DescribeLogDirsRequest, ctx: Context) -> DescribeLogDirsResponse:
    if not _DESCRIBE.granted(ctx.allows):
        return DescribeLogDirsResponse(error_code=_DESCRIBE.refusal, results=[])
    return DescribeLogDirsResponse(
        results=[_describe(directory, request, ctx) for directory in ctx.broker.log_directories]
    )


def _describe(directory: LogDirectory, request: DescribeLogDirsRequest, ctx: Context) -> DescribeLogDirsResult:
    result = DescribeLogDirsResult(log_dir=directory.path, topics=[], is_cordoned=_is_cordoned(directory, ctx))
    if directory.failure is not None:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    try:
        result.total_bytes, result.usable_bytes = ctx.broker.ports.disk.space(directory.path)
    except OSError:
        result.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        return result
    wanted = None if request.topics is None else {topic.topic: topic.partitions for topic in request.topics}
    topics: dict[str, DescribeLogDirsTopic] = {}
    for (topic, index), log in directory.logs.items():
        if log.deleted or (wanted is not None and index not in wanted.get(topic, ())):
            continue
        found = topics.setdefault(topic, DescribeLogDirsTopic(name=topic, partitions=[]))
        found.partitions.append(_partition(index, log))
    result.topics = list(topics.values())
    return result


def _partition(index: int, log: Log) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=index,
        partition_size=log.size_bytes,
        # How far this replica is behind what it knows to be committed.
        offset_lag=max(log.high_watermark - log.end_offset, 0),
        is_future_key=False,
    )


def _is_cordoned(directory: LogDirectory, ctx: Context) -> bool:
    broker = ctx.broker.image.brokers.get(ctx.broker.node_id)
    return broker is not None and directory.id in (broker.cordoned_log_dirs or ())
