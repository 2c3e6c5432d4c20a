"""Reads what a Fetch asks for: whole batches, in the request's order, within its limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from millstream.security.operations import Operation, ResourceType

if TYPE_CHECKING:
    from millstream.broker.dispatch import Context
    from millstream.broker.fetch_sessions import Wanted
    from millstream.broker.partition import Partition

CONSUMER_REPLICA_ID = -1
READ_COMMITTED = 1


class Reading(NamedTuple):
    """What one pass over the wanted partitions brought."""

    answers: list[tuple[Wanted, PartitionData]]
    partitions: list[Partition]
    total_bytes: int
    must_answer: bool


class FetchLimits(NamedTuple):
    """How much a Fetch may bring, and what its sender may see."""

    max_bytes: int
    replica_id: int
    isolation_level: int


def read_wanted(wanted: list[Wanted], limits: FetchLimits, ctx: Context) -> Reading:
    """One pass. The first batch is brought even if it exceeds the limits, or a reader would be stuck before it."""
    answers = []
    partitions = []
    left = limits.max_bytes
    total = 0
    must_answer = False
    for item in wanted:
        partition = None
        try:
            partition = find_partition(item, ctx)
            answer = _read_one(partition, item, limits, left, first=total == 0)
        except BrokerError as refusal:
            answer = PartitionData(
                partition_index=item.partition,
                error_code=refusal.code,
                high_watermark=-1,
                # Kafka's answers differ so: a list without entries where it did not come to a read, else none.
                aborted_transactions=[] if partition is None else None,
                records=b"",
            )
            must_answer = True
        else:
            partitions.append(partition)
            size = len(answer.records or b"")
            total += size
            left = max(0, left - size)
            must_answer = must_answer or answer.diverging_epoch.epoch != -1
        answers.append((item, answer))
    return Reading(answers, partitions, total, must_answer)


def find_partition(item: Wanted, ctx: Context) -> Partition:
    hosted = ctx.broker.partitions
    if isinstance(item.topic, str):
        topic = hosted.by_name.get(item.topic)
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        name = item.topic
    else:
        topic = hosted.by_id.get(item.topic)
        unknown = ErrorCode.UNKNOWN_TOPIC_ID
        name = "" if topic is None else topic.name
    if name and not ctx.allows(Operation.READ, ResourceType.TOPIC, name):
        raise _refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if topic is None:
        raise _refusal(unknown)
    partition = topic.partitions.get(item.partition)
    if partition is None:
        raise _refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return partition


class _Refused(BrokerError):
    """A refusal whose code is known only at run time."""


def _refusal(code: ErrorCode) -> _Refused:
    refused = _Refused(code.name)
    refused.code = code  # type: ignore[misc]  # an instance may say it more precisely than its class
    return refused


def _read_one(partition: Partition, item: Wanted, limits: FetchLimits, left: int, *, first: bool) -> PartitionData:
    partition.leading(item.current_leader_epoch)
    log = partition.log
    if item.last_fetched_epoch >= 0 and (diverging := _divergence(partition, item)) is not None:
        return PartitionData(
            partition_index=item.partition,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.start_offset,
            diverging_epoch=diverging,
            aborted_transactions=None,
            records=b"",
        )
    committed_only = limits.isolation_level == READ_COMMITTED
    if limits.replica_id != CONSUMER_REPLICA_ID:
        upto = log.end_offset
    elif committed_only:
        upto = log.last_stable_offset
    else:
        upto = log.high_watermark
    found = log.read_or_stretch(item.fetch_offset, min(item.max_bytes, left), upto, at_least_one_batch=first)
    aborted = None
    if committed_only:
        aborted = [
            AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in log.aborted_transactions(item.fetch_offset, upto)
        ]
    return PartitionData(
        partition_index=item.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.start_offset,
        aborted_transactions=aborted,
        # A stretch has a length, and the connection knows how to send it: to the encoder it is a batch like any other.
        records=cast("bytes", found or b""),
    )


def _divergence(partition: Partition, item: Wanted) -> EpochEndOffset | None:
    """KIP-320: where the reader's history and ours part, if they do."""
    epoch, end_offset = partition.log.end_offset_for_epoch(item.last_fetched_epoch)
    if epoch == -1:
        raise _refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < item.last_fetched_epoch or end_offset < item.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
