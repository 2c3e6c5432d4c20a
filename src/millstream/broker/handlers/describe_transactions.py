"""DescribeTransactions: what the coordinator knows of transactional ids (KIP-664)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.gathering import gather
from millstream.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from millstream.replicated import Decision
from millstream.security.operations import needs_of
from millstream.transactions.describing import describe

if TYPE_CHECKING:
    from millstream.protocol.errors import ErrorCode

_DESCRIBE, _SHOWN_TOPIC = needs_of(DescribeTransactionsRequest)


@handles(DescribeTransactionsRequest, versions="0")
def describe_transactions(
    request: DescribeTransactionsRequest, ctx: Context
) -> DescribeTransactionsResponse | Deferred:
    return gather(  # type: ignore[no-any-return]
        [_described(transactional_id, ctx) for transactional_id in request.transactional_ids],
        lambda found: DescribeTransactionsResponse(transaction_states=found),
    )


def _described(transactional_id: str, ctx: Context) -> Deferred:
    if not _DESCRIBE.granted(ctx.allows, transactional_id):
        refused = Deferred()
        refused.finish(_unknown(transactional_id, _DESCRIBE.refusal))
        return refused
    shows = partial(_SHOWN_TOPIC.granted, ctx.allows)
    return ctx.broker.transactions.submit(
        transactional_id,
        lambda machine, _, __: Decision(response=describe(machine, transactional_id, shows)),
        refuse=partial(_unknown, transactional_id),
    )


def _unknown(transactional_id: str, code: ErrorCode) -> TransactionState:
    return TransactionState(
        error_code=code,
        transactional_id=transactional_id,
        transaction_state="",
        transaction_timeout_ms=0,
        transaction_start_time_ms=0,
        producer_id=0,
        producer_epoch=0,
        topics=[],
    )
