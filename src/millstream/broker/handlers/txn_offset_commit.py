"""TxnOffsetCommit: offsets that count once the producer's transaction commits.

Before they are written, the offsets partition must be part of the transaction: from version 5 on it is made so here
(KIP-890), before that the producer did it with AddOffsetsToTxn and it is only verified.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.coordinator_topics import create_coordinator_topic
from millstream.broker.dispatch import Context, handles
from millstream.broker.participation import has_ongoing, participation
from millstream.groups.offsets.txn_commit import TxnOffsetCommit, refuse_txn_commit
from millstream.metadata.names import OFFSETS_TOPIC
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from millstream.broker.dispatch import Deferred
    from millstream.broker.participation import Participation

_WRITE_TRANSACTION, _READ_GROUP, _READ_TOPIC = needs_of(TxnOffsetCommitRequest)
ADDS_SINCE = 5
ABORTABLE_SINCE = 4
# What passes, in the words of a group coordinator: the producer looks for it again and repeats the request.
_RETRIABLE = ErrorCode.COORDINATOR_NOT_AVAILABLE


@handles(TxnOffsetCommitRequest, versions="0-5")
def txn_offset_commit(
    request: TxnOffsetCommitRequest, ctx: Context
) -> TxnOffsetCommitResponse | Deferred | Awaitable[TxnOffsetCommitResponse]:
    if not _WRITE_TRANSACTION.granted(ctx.allows, request.transactional_id):
        return refuse_txn_commit(request, _WRITE_TRANSACTION.refusal)
    if not _READ_GROUP.granted(ctx.allows, request.group_id):
        return refuse_txn_commit(request, _READ_GROUP.refusal)
    commit = TxnOffsetCommit(request, ctx.version, ctx.broker.image, partial(_READ_TOPIC.granted, ctx.allows))
    if commit.is_void:
        return commit.response
    if not request.group_id:
        # Said before the transaction hears of it; a plain commit may leave the group's name empty, for old clients.
        return commit.refuse(ErrorCode.INVALID_GROUP_ID)
    if OFFSETS_TOPIC not in ctx.broker.image.topics.by_name:
        return _create_and_commit(commit, request, ctx)
    asked = _participation(request, ctx)
    if asked is None:
        return _commit(commit, request, ctx)
    asked.ask()
    if asked.is_settled:
        return _commit_if_part(commit, request, ctx, asked)
    return _wait_and_commit(commit, request, ctx, asked)


def _participation(request: TxnOffsetCommitRequest, ctx: Context) -> Participation | None:
    """What has to be asked before; None if the transaction has written here already."""
    index = ctx.broker.groups.partition_of(request.group_id)
    partition = ctx.broker.partitions.get(OFFSETS_TOPIC, index)
    producer_id, epoch = request.producer_id, request.producer_epoch
    if partition is None or has_ongoing(partition, producer_id, epoch):
        return None  # who does not lead the group's partition says so when the offsets are written
    return participation(
        ctx.broker,
        request.transactional_id,
        producer_id,
        epoch,
        {(OFFSETS_TOPIC, index): partition},
        add=ctx.version >= ADDS_SINCE,
        abortable=ctx.version >= ABORTABLE_SINCE,
        retriable=_RETRIABLE,
    )


async def _create_and_commit(
    commit: TxnOffsetCommit, request: TxnOffsetCommitRequest, ctx: Context
) -> TxnOffsetCommitResponse:
    await create_coordinator_topic(ctx.broker, OFFSETS_TOPIC)
    try:
        asked = _participation(request, ctx)
    except BrokerError as refusal:
        return commit.refuse(refusal.code)
    if asked is not None:
        return await _wait_and_commit(commit, request, ctx, asked)
    response: TxnOffsetCommitResponse = await _commit(commit, request, ctx).wait()
    return response


async def _wait_and_commit(
    commit: TxnOffsetCommit, request: TxnOffsetCommitRequest, ctx: Context, asked: Participation
) -> TxnOffsetCommitResponse:
    await asked.wait()
    response = _commit_if_part(commit, request, ctx, asked)
    return response if isinstance(response, TxnOffsetCommitResponse) else await response.wait()


def _commit_if_part(
    commit: TxnOffsetCommit, request: TxnOffsetCommitRequest, ctx: Context, asked: Participation
) -> TxnOffsetCommitResponse | Deferred:
    for code in asked.refusals().values():
        return commit.refuse(code)
    return _commit(commit, request, ctx)


def _commit(commit: TxnOffsetCommit, request: TxnOffsetCommitRequest, ctx: Context) -> Deferred:
    return ctx.broker.groups.submit(
        request.group_id, lambda machine, _, now_ms: commit.decide(machine, now_ms), refuse=commit.refuse
    )
