"""Reads what a Fetch asks for: whole batches, in the request's order, within its limits.

A follower reads up to the end of its leader's log, and what it asks for tells how far it has come. A consumer reads up
to the high watermark or the last stable offset, from the leader or, if it knows how (version 11), from a follower; the
leader may send it to one that is nearer (KIP-392, closest_replica.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.broker.closest_replica import closest_replica
from millstream.broker.leader_hints import why_not_hosted
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.fetch import AbortedTransaction, EpochEndOffset, PartitionData
from millstream.security.operations import Operation, ResourceType

if TYPE_CHECKING:
    from millstream.broker.dispatch import Context
    from millstream.broker.fetch_sessions import Wanted
    from millstream.broker.partition import Partition
    from millstream.protocol.uuid import Uuid

CONSUMER_REPLICA_ID = -1
READ_COMMITTED = 1
FOLLOWERS_SERVE_SINCE = 11


class Reading(NamedTuple):
    """What one pass over the wanted partitions brought."""

    answers: list[tuple[Wanted, PartitionData]]
    partitions: list[Partition]
    total_bytes: int
    must_answer: bool


class FetchLimits(NamedTuple):
    """How much a Fetch may bring, who sent it, and what they may see."""

    max_bytes: int
    replica_id: int
    isolation_level: int
    from_follower: bool = False
    broker_epoch: int = -1
    rack: str = ""


def read_wanted(wanted: list[Wanted], limits: FetchLimits, ctx: Context, *, again: bool = False) -> Reading:
    """One pass. The first batch is brought even if it exceeds the limits, or a reader would be stuck before it.

    `again` says that the same request was read for before: what it tells of a follower is known, and may be old.
    """
    answers = []
    partitions = []
    left = limits.max_bytes
    total = 0
    must_answer = False
    for item in wanted:
        partition = None
        try:
            partition = find_partition(item, limits, ctx)
            answer = _read_one(partition, item, limits, left, ctx, first=total == 0, again=again)
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
            must_answer = must_answer or answer.diverging_epoch.epoch != -1 or answer.preferred_read_replica != -1
        answers.append((item, answer))
    return Reading(answers, partitions, total, must_answer)


def find_partition(item: Wanted, limits: FetchLimits, ctx: Context) -> Partition:
    hosted = ctx.broker.partitions
    wanted = item.topic
    topic = hosted.by_name.get(wanted) if isinstance(wanted, str) else hosted.by_id.get(wanted)
    # A follower has shown its right to act for the cluster, and needs none to read, as in Kafka.
    if not limits.from_follower:
        name = _name_of(wanted, ctx) if topic is None else topic.name
        if name and not ctx.allows(Operation.READ, ResourceType.TOPIC, name):
            raise _refusal(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    partition = None if topic is None else topic.partitions.get(item.partition)
    if partition is None:
        raise _refusal(why_not_hosted(ctx.broker, wanted, item.partition))
    return partition


def _name_of(wanted: str | Uuid, ctx: Context) -> str:
    """Of a topic that is not hosted here; empty if nobody knows it."""
    if isinstance(wanted, str):
        return wanted
    known = ctx.broker.image.topics.by_id.get(wanted)
    return "" if known is None else known.name


class _Refused(BrokerError):
    """A refusal whose code is known only at run time."""


def _refusal(code: ErrorCode) -> _Refused:
    refused = _Refused(code.name)
    refused.code = code  # type: ignore[misc]  # an instance may say it more precisely than its class
    return refused


def _read_one(
    partition: Partition, item: Wanted, limits: FetchLimits, left: int, ctx: Context, *, first: bool, again: bool
) -> PartitionData:
    log = partition.log
    if partition.leader is not None or limits.from_follower or ctx.version < FOLLOWERS_SERVE_SINCE:
        partition.leading(item.current_leader_epoch)
    else:
        partition.readable(item.current_leader_epoch)
    if item.last_fetched_epoch >= 0 and (diverging := _divergence(partition, item)) is not None:
        return _told(partition, item, diverging_epoch=diverging)
    committed_only = limits.isolation_level == READ_COMMITTED
    if limits.replica_id != CONSUMER_REPLICA_ID:
        upto = log.end_offset
    else:
        if limits.rack and partition.leader is not None:
            closest = closest_replica(partition.leader, item.fetch_offset, limits.rack, ctx.broker)
            if closest is not None:
                return _told(partition, item, preferred_read_replica=closest)
        upto = log.last_stable_offset if committed_only else log.high_watermark
    # A follower is sent what is not committed. It is read at once: if this broker has to cut its log, the file changes.
    read = log.read if limits.from_follower else log.read_or_stretch
    found = read(item.fetch_offset, min(item.max_bytes, left), upto, at_least_one_batch=first)
    if limits.from_follower:
        isr_changes = ctx.broker.isr_changes
        if not again:
            # Only now: a follower whose offset lies outside of this log holds nothing that would count.
            isr_changes.follower_fetched(partition, item, limits.replica_id, limits.broker_epoch)
        if found and isr_changes.throttles.limits_sending(partition, limits.replica_id):
            found = isr_changes.throttles.send(found, limits.replica_id)  # type: ignore[arg-type]  # it was read
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
        records=found or b"",  # type: ignore[arg-type]  # see above
    )


def _told(
    partition: Partition,
    item: Wanted,
    diverging_epoch: EpochEndOffset | None = None,
    preferred_read_replica: int = -1,
) -> PartitionData:
    """An answer without records."""
    log = partition.log
    return PartitionData(
        partition_index=item.partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.start_offset,
        diverging_epoch=diverging_epoch or EpochEndOffset(),
        preferred_read_replica=preferred_read_replica,
        aborted_transactions=None,
        records=b"",
    )


def _divergence(partition: Partition, item: Wanted) -> EpochEndOffset | None:
    """KIP-320: where the reader's history and ours part, if they do."""
    log = partition.log
    if item.last_fetched_epoch == log.epochs.latest_epoch and item.fetch_offset <= log.end_offset:
        return None  # nearly every fetch
    epoch, end_offset = log.end_offset_for_epoch(item.last_fetched_epoch)
    if epoch == -1:
        raise _refusal(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch < item.last_fetched_epoch or end_offset < item.fetch_offset:
        return EpochEndOffset(epoch=epoch, end_offset=end_offset)
    return None
