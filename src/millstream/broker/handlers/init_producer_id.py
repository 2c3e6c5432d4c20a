"""InitProducerId: a producer id and epoch, for idempotent or for transactional writing.

Without a transactional id every request gets a new id with epoch 0, as in Kafka, also one that brings an id along:
the old one cannot be continued, since nobody but the producer knows how far it got. With one, the coordinator of the
transactional id decides (transactions/producers.py).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.broker.transaction_codes import fenced_since
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from millstream.security.operations import ANY_NAME, needs_of
from millstream.transactions.producers import Producer, decide_init_producer_id

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from millstream.broker.dispatch import Deferred

_TRANSACTIONAL, _TWO_PHASE, _IDEMPOTENT = needs_of(InitProducerIdRequest)
NO_PRODUCER_ID, NO_PRODUCER_EPOCH = -1, -1
PRODUCER_FENCED_SINCE = 4


@handles(InitProducerIdRequest, versions="0-5")
def init_producer_id(
    request: InitProducerIdRequest, ctx: Context
) -> InitProducerIdResponse | Deferred | Awaitable[InitProducerIdResponse]:
    # The check has its place before all others: whoever may not use the id learns nothing about it.
    if request.transactional_id is not None:
        if not _TRANSACTIONAL.granted(ctx.allows, request.transactional_id):
            return _refused(_TRANSACTIONAL.refusal, ctx.version)
    elif not _IDEMPOTENT.granted(ctx.allows, ANY_NAME):
        return _refused(_IDEMPOTENT.refusal, ctx.version)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        return _refused(ErrorCode.INVALID_REQUEST, ctx.version)
    if request.transactional_id is None:
        return _idempotent(ctx)
    if ctx.broker.producer_ids.in_stock:
        return _transactional(request, ctx)
    return _transactional_once_stocked(request, ctx)


async def _idempotent(ctx: Context) -> InitProducerIdResponse:
    try:
        producer_id = await ctx.broker.producer_ids.next()
    except BrokerError as refusal:
        return _refused(refusal.code, ctx.version)
    return InitProducerIdResponse(producer_id=producer_id, producer_epoch=0)


async def _transactional_once_stocked(request: InitProducerIdRequest, ctx: Context) -> InitProducerIdResponse:
    try:
        await ctx.broker.producer_ids.stock_up()
    except BrokerError as refusal:
        return _refused(refusal.code, ctx.version)
    response: InitProducerIdResponse = await _transactional(request, ctx).wait()
    return response


def _transactional(request: InitProducerIdRequest, ctx: Context) -> Deferred:
    has_one = request.producer_id != NO_PRODUCER_ID
    return ctx.broker.transactions.submit(
        request.transactional_id or "",
        lambda machine, _, now_ms: decide_init_producer_id(
            machine,
            request.transactional_id or "",
            request.transaction_timeout_ms,
            Producer(request.producer_id, request.producer_epoch) if has_one else None,
            now_ms,
        ),
        refuse=partial(_refused, version=ctx.version),
    )


def _refused(code: ErrorCode, version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=fenced_since(PRODUCER_FENCED_SINCE, version, code), producer_epoch=NO_PRODUCER_EPOCH
    )
