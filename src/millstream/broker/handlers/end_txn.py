"""EndTxn: a producer commits or aborts its transaction. Version 5 stands for transaction.version 2 (KIP-890)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.broker.transaction_codes import fenced_since
from millstream.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from millstream.security.operations import needs_of
from millstream.transactions.ending import decide_end
from millstream.transactions.transaction import EPOCH_BUMP_SINCE, NO_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from millstream.broker.dispatch import Deferred
    from millstream.protocol.errors import ErrorCode

(_WRITE,) = needs_of(EndTxnRequest)
PRODUCER_FENCED_SINCE = 2
EPOCH_BUMPS_SINCE_VERSION = 5


@handles(EndTxnRequest, versions="0-5")
def end_txn(request: EndTxnRequest, ctx: Context) -> EndTxnResponse | Deferred:
    if not _WRITE.granted(ctx.allows, request.transactional_id):
        return _refused(_WRITE.refusal, ctx.version)
    return ctx.broker.transactions.submit(
        request.transactional_id,
        lambda machine, _, now_ms: decide_end(
            machine,
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            committed=request.committed,
            client_version=EPOCH_BUMP_SINCE if ctx.version >= EPOCH_BUMPS_SINCE_VERSION else 0,
            now_ms=now_ms,
        ),
        refuse=partial(_refused, version=ctx.version),
    )


def _refused(code: ErrorCode, version: int) -> EndTxnResponse:
    return EndTxnResponse(
        error_code=fenced_since(PRODUCER_FENCED_SINCE, version, code),
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_EPOCH,
    )
