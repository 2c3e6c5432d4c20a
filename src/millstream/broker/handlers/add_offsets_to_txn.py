"""AddOffsetsToTxn: the offsets partition of a group becomes part of a transaction.

Not used where transaction.version is 2: TxnOffsetCommit adds the partition itself (KIP-890).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.coordinator_topics import create_coordinator_topic
from millstream.broker.dispatch import Context, handles
from millstream.broker.transaction_codes import fenced_since
from millstream.metadata.names import OFFSETS_TOPIC
from millstream.protocol.errors import CoordinatorNotAvailable
from millstream.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from millstream.security.operations import needs_of
from millstream.transactions.participants import decide_add_partitions

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from millstream.broker.dispatch import Deferred
    from millstream.protocol.errors import ErrorCode

_WRITE_TRANSACTION, _READ_GROUP = needs_of(AddOffsetsToTxnRequest)
PRODUCER_FENCED_SINCE = 2


@handles(AddOffsetsToTxnRequest, versions="0-4")
def add_offsets_to_txn(
    request: AddOffsetsToTxnRequest, ctx: Context
) -> AddOffsetsToTxnResponse | Deferred | Awaitable[AddOffsetsToTxnResponse]:
    if not _WRITE_TRANSACTION.granted(ctx.allows, request.transactional_id):
        return AddOffsetsToTxnResponse(error_code=_WRITE_TRANSACTION.refusal)
    if not _READ_GROUP.granted(ctx.allows, request.group_id):
        return AddOffsetsToTxnResponse(error_code=_READ_GROUP.refusal)
    if OFFSETS_TOPIC in ctx.broker.image.topics.by_name:
        return _add(request, ctx)
    # A producer asks for the group's coordinator, who would make the topic, only after this.
    return _create_and_add(request, ctx)


async def _create_and_add(request: AddOffsetsToTxnRequest, ctx: Context) -> AddOffsetsToTxnResponse:
    await create_coordinator_topic(ctx.broker, OFFSETS_TOPIC)
    try:
        response: AddOffsetsToTxnResponse = await _add(request, ctx).wait()
    except CoordinatorNotAvailable as refusal:
        return _refused(refusal.code, ctx.version)
    return response


def _add(request: AddOffsetsToTxnRequest, ctx: Context) -> Deferred:
    place = (OFFSETS_TOPIC, ctx.broker.groups.partition_of(request.group_id))
    return ctx.broker.transactions.submit(
        request.transactional_id,
        lambda machine, _, now_ms: decide_add_partitions(
            machine,
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            (place,),
            client_version=0,
            answer=AddOffsetsToTxnResponse(),
            now_ms=now_ms,
        ),
        refuse=partial(_refused, version=ctx.version),
    )


def _refused(code: ErrorCode, version: int) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=fenced_since(PRODUCER_FENCED_SINCE, version, code))
