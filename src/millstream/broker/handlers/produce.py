"""Produce: append every batch to its leader; answer once `acks` is met.

The hottest path of the broker. One bad partition never fails its neighbours. Appends happen here and now, in request
order; only the wait for the high watermark (replication, fsync) is deferred.

Batches of a transaction may have to be announced to its coordinator first (transactional_produce.py). Where that takes
time, the request becomes a coroutine, so that the connection's next batches stay behind it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.commit_wait import CommitWait
from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.leader_hints import HINTED, addresses_of, leader_hint, why_not_hosted
from millstream.broker.transactional_produce import ATTRIBUTES_BYTE, Batch, check_batches, is_transactional
from millstream.metadata.names import INTERNAL_TOPICS
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from millstream.protocol.uuid import ZERO_UUID
from millstream.records.batch import HEADER_BYTES, TRANSACTIONAL_BIT
from millstream.security.operations import Operation, ResourceType, needs_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator, Mapping

    from millstream.broker.participation import Participation
    from millstream.broker.partition import Partition
    from millstream.protocol.messages.produce import PartitionProduceData, TopicProduceData
    from millstream.protocol.uuid import Uuid

TOPIC_IDS_SINCE = 13
HINTS_SINCE = 10
# Refusals that follow from what else a producer has written.
_BY_THE_LOG = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)
_NO_LOG_START = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
ZSTD_SINCE = 7
_WRITE_TRANSACTION, _ = needs_of(ProduceRequest)


@handles(ProduceRequest, versions="3-13", advertise_from=0)
def produce(
    request: ProduceRequest, ctx: Context
) -> ProduceResponse | Deferred | Awaitable[ProduceResponse | None] | None:
    if request.acks not in (-1, 0, 1):
        return _refuse_all(request, ErrorCode.INVALID_REQUIRED_ACKS)
    if request.transactional_id is not None:
        return _produce_in_transaction(request, request.transactional_id, ctx)
    return _append_all(request, ctx, None)


def _append_all(
    request: ProduceRequest, ctx: Context, refused: Mapping[tuple[str, int], ErrorCode] | None
) -> ProduceResponse | Deferred | None:
    """`refused`: partitions that must not take their batch; None if no batch may be transactional at all."""
    acks = request.acks
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
                answer = _append(hosted.get(data.index), topic, data, acks, ctx, now_ms, waiting, refused)
            failed = failed or answer.error_code != 0
            answers.append(answer)
        topics.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers))
    if acks == 0:
        if failed:
            # The client asked for no answer, so a closed connection is the only way to tell it.
            ctx.connection.cut_off("a Produce with acks=0 failed")
        return None
    response = ProduceResponse(responses=topics)
    if failed:
        _name_leaders(ctx, response)
    if waiting:
        wait = CommitWait(broker.loop, request.timeout_ms, response, waiting, partial(_not_acknowledged, ctx))
        return wait.deferred
    return response


def _hosted(topic: TopicProduceData, ctx: Context) -> tuple[dict[int, Partition], int | None]:
    """The hosted partitions of the topic by index, or why there are none."""
    partitions = ctx.broker.partitions
    name: str = topic.name
    if ctx.version >= TOPIC_IDS_SINCE:
        topic_id: Uuid = topic.topic_id
        found = partitions.by_id.get(topic_id)
        if found is None:
            known = ctx.broker.image.topics.by_id.get(topic_id)
            if known is None:
                return {}, ErrorCode.UNKNOWN_TOPIC_ID
            name = known.name
        else:
            name = found.name
    else:
        found = partitions.by_name.get(name)
        topic.topic_id = ZERO_UUID
    if not ctx.allows(Operation.WRITE, ResourceType.TOPIC, name):
        return {}, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if name in INTERNAL_TOPICS and (found is not None or name in ctx.broker.image.topics.by_name):
        # What coordinators write there is believed. (Kafka lets a client in that calls itself "__admin_client".)
        return {}, ErrorCode.INVALID_TOPIC_EXCEPTION
    return {} if found is None else found.partitions, None


def _believable(code: ErrorCode, ctx: Context) -> ErrorCode:
    """A leader that was replaced and does not know lacks what the producer wrote since, and must not judge it."""
    is_final = code in _BY_THE_LOG and not ctx.broker.membership.is_in_touch
    return ErrorCode.NOT_LEADER_OR_FOLLOWER if is_final else code


def _append(
    partition: Partition | None,
    topic: TopicProduceData,
    data: PartitionProduceData,
    acks: int,
    ctx: Context,
    now_ms: int,
    waiting: list[tuple[Partition, int, PartitionProduceResponse]],
    refused: Mapping[tuple[str, int], ErrorCode] | None,
) -> PartitionProduceResponse:
    metrics = ctx.broker.metrics
    if partition is None:
        code = why_not_hosted(ctx.broker, _topic_key(topic, ctx), data.index)
        return PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
    records = data.records
    try:
        if not records:
            return PartitionProduceResponse(index=data.index, error_code=ErrorCode.INVALID_RECORD, base_offset=-1)
        if refused is None:
            # `is_transactional`, spelled out: every batch of every producer passes here.
            if len(records) >= HEADER_BYTES and records[ATTRIBUTES_BYTE] & TRANSACTIONAL_BIT:
                return PartitionProduceResponse(index=data.index, error_code=_WRITE_TRANSACTION.refusal, base_offset=-1)
        elif (partition.topic, partition.index) in refused:
            code = _believable(refused[partition.topic, partition.index], ctx)
            return PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
        appended = partition.append(records, acks, now_ms, zstd_allowed=ctx.version >= ZSTD_SINCE)
    except BrokerError as refusal:
        metrics.failed_produces += 1
        code = _believable(refusal.code, ctx)
        return PartitionProduceResponse(
            index=data.index,
            error_code=code,
            base_offset=-1,
            # Kafka tells the log's start where the records were at fault, and nothing where the partition was.
            log_start_offset=-1 if code in _NO_LOG_START else partition.log.start_offset,
            record_errors=[
                BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                for index, text in getattr(refusal, "record_errors", ())
            ],
            error_message=refusal.message,
        )
    if not appended.duplicate:
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


# --- batches of a transaction


def _produce_in_transaction(
    request: ProduceRequest, transactional_id: str, ctx: Context
) -> ProduceResponse | Deferred | Awaitable[ProduceResponse | None] | None:
    batches = list(_transactional_batches(request, ctx))
    if not batches:
        return _append_all(request, ctx, None)
    if not _WRITE_TRANSACTION.granted(ctx.allows, transactional_id):
        return _refuse_all(request, _WRITE_TRANSACTION.refusal)
    refused, question = check_batches(ctx.broker, transactional_id, batches, ctx.version)
    if question is not None:
        question.ask()
        if not question.is_settled:
            # Now, and not in the coroutine, which begins in a later turn of the loop: by then other connections have
            # been read into the same memory.
            _own_records(request)
            return _wait_and_append(request, ctx, refused, question)
        refused |= question.refusals()
    return _append_all(request, ctx, refused)


async def _wait_and_append(
    request: ProduceRequest, ctx: Context, refused: dict[tuple[str, int], ErrorCode], question: Participation
) -> ProduceResponse | None:
    await question.wait()
    # Nobody was asked where the transaction had records already; but it may have ended while others were asked for.
    ended = {
        batch.place: ErrorCode.INVALID_TXN_STATE
        for batch in _transactional_batches(request, ctx)
        if not question.is_about(batch.place) and not batch.is_of_ongoing
    }
    outcome = _append_all(request, ctx, ended | refused | question.refusals())
    if isinstance(outcome, Deferred):
        response: ProduceResponse = await outcome.wait()
        return response
    return outcome


def _own_records(request: ProduceRequest) -> None:
    for topic in request.topic_data:
        for data in topic.partition_data:
            data.records = None if data.records is None else bytes(data.records)


def _transactional_batches(request: ProduceRequest, ctx: Context) -> Iterator[Batch]:
    """Those that have a place here; the others are refused when it is their turn to be appended."""
    for topic in request.topic_data:
        hosted, refusal = _hosted(topic, ctx)
        if refusal is None:
            for data in topic.partition_data:
                partition, records = hosted.get(data.index), data.records
                if partition is not None and records is not None and is_transactional(records):
                    yield Batch((partition.topic, partition.index), partition, records)


def _topic_key(topic: TopicProduceData, ctx: Context) -> str | Uuid:
    return topic.topic_id if ctx.version >= TOPIC_IDS_SINCE else topic.name


def _not_acknowledged(ctx: Context, response: ProduceResponse) -> None:
    """What was appended was not committed in time: hang up where this broker may have been replaced, or say so.

    A leader that is cut off from the cluster, and not from its clients, names itself when they ask who leads.
    librdkafka asks the broker that answered it last: where that leader has all of its partitions, it would hear nothing
    else until the network is whole. Without the connection it asks another broker. (Apache Kafka handles one request of
    a connection at a time: there the requests behind the first one outlast the client's patience, and it hangs up.)
    """
    timed_out = any(
        answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        for topic in response.responses
        for answer in topic.partition_responses
    )
    if timed_out and not ctx.broker.membership.is_in_touch:
        ctx.connection.cut_off("a Produce timed out, and another broker may lead by now")
    else:
        _name_leaders(ctx, response)


def _name_leaders(ctx: Context, response: ProduceResponse) -> None:
    """Tell who leads instead, where that is why something was refused."""
    if ctx.version < HINTS_SINCE:
        return
    leaders = []
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code in HINTED:
                key = topic.topic_id if ctx.version >= TOPIC_IDS_SINCE else topic.name
                hint = leader_hint(ctx.broker, key, answer.index)
                if hint is not None:
                    answer.current_leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
                    leaders.append(hint.leader_id)
    response.node_endpoints = [
        NodeEndpoint(node_id=at.node_id, host=at.host, port=at.port, rack=at.rack) for at in addresses_of(ctx, leaders)
    ]


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
