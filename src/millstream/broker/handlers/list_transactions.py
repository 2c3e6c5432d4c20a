"""ListTransactions: the transactions of this coordinator, by state, producer, age (KIP-994) and id (KIP-1152)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.gathering import gather
from millstream.groups.regex import check_pattern, matching
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from millstream.replicated import Decision
from millstream.security.operations import needs_of
from millstream.transactions.describing import Filters, list_transactions
from millstream.transactions.transaction import STATES_BY_LABEL

if TYPE_CHECKING:
    from millstream.protocol.messages.list_transactions import TransactionState
    from millstream.runtime.shard import Shard
    from millstream.transactions.machine import TransactionMachine

(_DESCRIBE,) = needs_of(ListTransactionsRequest)


@handles(ListTransactionsRequest, versions="0-2")
def list_all(request: ListTransactionsRequest, ctx: Context) -> ListTransactionsResponse | Deferred:
    unknown = [name for name in request.state_filters if name not in STATES_BY_LABEL]
    known = [STATES_BY_LABEL[name] for name in request.state_filters if name in STATES_BY_LABEL]
    if unknown and not known:
        # Nothing is in a state that does not exist.
        return _answer([], unknown)
    pattern = request.transactional_id_pattern
    try:
        if pattern:
            check_pattern(pattern)
    except BrokerError as refusal:
        return _refused(refusal.code)
    matches = partial(_matches, pattern) if pattern else None
    filters = Filters(known, request.producer_id_filters, request.duration_filter, matches)
    coordinator = ctx.broker.transactions

    def listed(shard: Shard[TransactionMachine]) -> Deferred:
        return coordinator.submit_to(
            lambda: shard,
            lambda machine, _, now_ms: Decision(response=list_transactions(machine, filters, now_ms)),
            refuse=lambda code: code,
        )

    def combine(answers: list[list[TransactionState] | ErrorCode]) -> ListTransactionsResponse:
        found: list[TransactionState] = []
        for answer in answers:
            if isinstance(answer, ErrorCode):
                # A shard that could not be read, or has just gone elsewhere, does not hide the others.
                if answer is not ErrorCode.NOT_COORDINATOR:
                    return _refused(answer)
            else:
                found += (row for row in answer if _DESCRIBE.granted(ctx.allows, row.transactional_id))
        return _answer(found, unknown)

    return gather([listed(shard) for shard in coordinator.active_shards()], combine)  # type: ignore[no-any-return]


def _matches(pattern: str, transactional_id: str) -> bool:
    return bool(matching(pattern, (transactional_id,)))


def _answer(found: list[TransactionState], unknown: list[str]) -> ListTransactionsResponse:
    return ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=found)


def _refused(code: ErrorCode) -> ListTransactionsResponse:
    return ListTransactionsResponse(error_code=code, unknown_state_filters=[], transaction_states=[])
