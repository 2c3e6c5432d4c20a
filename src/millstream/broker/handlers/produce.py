"""Produce: append every batch to its leader; answer once `acks` is met.

The hottest path of the broker. One bad partition never fails its neighbours. Appends happen here and now, in request
order; only the wait for the high watermark (replication, fsync) is deferred.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.security.operations import Operation, ResourceType

if TYPE_CHECKING:
    from millstream.broker.partition import Partition
    from millstream.protocol.messages.produce import PartitionProduceData, TopicProduceData
    from millstream.protocol.uuid import Uuid

TOPIC_IDS_SINCE = 13
ZSTD_SINCE = 7


@handles(ProduceRequest, versions="3-13", advertise_from=0)
def produce(request: ProduceRequest, ctx: Context) -> ProduceResponse | Deferred | None:
    acks = request.acks
    if acks not in (-1, 0, 1):
        return _refuse_all(request, ErrorCode.INVALID_REQUIRED_ACKS)
    broker = ctx.broker
    now_ms = broker.ports.clock.wall_ms()
    topics = []
    waiting: list[tuple[Partition, int, PartitionProduceResponse]] = []
    failed = False
    for topic in request.topic_data:
        answers = []
        hosted, refusal = _hosted(topic, ctx)
        for data in topic.partition_data:
            if refusal is not None:
                answer = PartitionProduceResponse(index=data.index, error_code=refusal, base_offset=-1)
            else:
                answer = _append(hosted.get(data.index), data, acks, ctx, now_ms, waiting)
            failed = failed or answer.error_code != 0
            answers.append(answer)
        topics.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers))
    if acks == 0:
        if failed:
            # The client asked for no answer, so a closed connection is the only way to tell it.
            ctx.connection.cut_off("a Produce with acks=0 failed")
        return None
    response = ProduceResponse(responses=topics)
    if waiting:
        return _when_all_committed(request, response, waiting, ctx)
    return response


def _hosted(topic: TopicProduceData, ctx: Context) -> tuple[dict[int, Partition], int | None]:
    """The hosted partitions of the topic by index, or why there are none."""
    partitions = ctx.broker.partitions
    name: str = topic.name
    if ctx.version >= TOPIC_IDS_SINCE:
        topic_id: Uuid = topic.topic_id
        found = partitions.by_id.get(topic_id)
        if found is None:
            return {}, ErrorCode.UNKNOWN_TOPIC_ID
        name = found.name
    else:
        found = partitions.by_name.get(name)
        topic.topic_id = ZERO_UUID
    if not ctx.allows(Operation.WRITE, ResourceType.TOPIC, name):
        return {}, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if found is None:
        return {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return found.partitions, None


def _append(
    partition: Partition | None,
    data: PartitionProduceData,
    acks: int,
    ctx: Context,
    now_ms: int,
    waiting: list[tuple[Partition, int, PartitionProduceResponse]],
) -> PartitionProduceResponse:
    metrics = ctx.broker.metrics
    if partition is None:
        return PartitionProduceResponse(
            index=data.index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, base_offset=-1
        )
    records = data.records
    try:
        if not records:
            return PartitionProduceResponse(index=data.index, error_code=ErrorCode.INVALID_RECORD, base_offset=-1)
        appended = partition.append(records, acks, now_ms, zstd_allowed=ctx.version >= ZSTD_SINCE)
    except BrokerError as refusal:
        metrics.failed_produces += 1
        return PartitionProduceResponse(
            index=data.index,
            error_code=refusal.code,
            base_offset=-1,
            log_append_time_ms=-1,
            log_start_offset=-1,
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                for index, text in getattr(refusal, "record_errors", ())
            ],
            error_message=refusal.message,
        )
    metrics.produced_bytes += len(records)
    metrics.produced_records += appended.last_offset - appended.base_offset + 1
    answer = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time,
        log_start_offset=appended.log_start_offset,
    )
    if acks == -1 and not partition.is_committed(appended.last_offset):
        waiting.append((partition, appended.last_offset, answer))
    return answer


def _when_all_committed(
    request: ProduceRequest,
    response: ProduceResponse,
    waiting: list[tuple[Partition, int, PartitionProduceResponse]],
    ctx: Context,
) -> Deferred:
    """Answer when the last append is below the high watermark, or with REQUEST_TIMED_OUT for those that are not."""
    left = len(waiting)

    def settle(why_not: ErrorCode) -> None:
        timer.cancel()
        for partition, last_offset, answer in waiting:
            if not partition.is_committed(last_offset):
                answer.error_code = ErrorCode.KAFKA_STORAGE_ERROR if partition.log.is_offline else why_not
                answer.base_offset = -1
        deferred.finish(response)

    def one_done() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            settle(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    timer = ctx.broker.loop.call_later(max(0, request.timeout_ms) / 1000, settle, ErrorCode.REQUEST_TIMED_OUT)
    deferred = Deferred(on_abandon=timer.cancel)
    for partition, last_offset, _ in waiting:
        partition.when_committed(last_offset, one_done)
    return deferred


def _refuse_all(request: ProduceRequest, code: ErrorCode) -> ProduceResponse:
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
