"""DescribeTransactions and ListTransactions (KIP-664): what a coordinator tells of its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.protocol.errors import InvalidRequest, TransactionalIdNotFound
from millstream.protocol.messages.describe_transactions import TopicData
from millstream.protocol.messages.describe_transactions import TransactionState as DescribedTransaction
from millstream.protocol.messages.list_transactions import TransactionState as ListedTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from millstream.transactions.machine import TransactionMachine
    from millstream.transactions.transaction import State, Transaction

NO_DURATION = -1


def describe(machine: TransactionMachine, transactional_id: str, shows: Callable[[str], bool]) -> DescribedTransaction:
    """The transaction of one id; `shows` says which topics may be named."""
    if not transactional_id:
        raise InvalidRequest
    found = machine.transactions.get(transactional_id)
    if found is None:
        raise TransactionalIdNotFound
    topics: dict[str, list[int]] = {}
    for topic, index in found.partitions:
        if topic in topics or shows(topic):
            topics.setdefault(topic, []).append(index)
    return DescribedTransaction(
        transactional_id=transactional_id,
        transaction_state=found.state.label,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer_id,
        producer_epoch=found.epoch,
        topics=[TopicData(topic=topic, partitions=indexes) for topic, indexes in topics.items()],
    )


class Filters(NamedTuple):
    """Which transactions are asked for; an empty filter lets everything pass."""

    states: Collection[State] = ()
    producer_ids: Collection[int] = ()
    running_longer_than_ms: int = NO_DURATION
    matches: Callable[[str], object] | None = None

    def accept(self, transaction: Transaction, now_ms: int) -> bool:
        if self.states and transaction.state not in self.states:
            return False
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        # Kafka's arithmetic: an id that never had a transaction began at -1, which is long ago.
        if self.running_longer_than_ms >= 0 and now_ms - transaction.start_ms <= self.running_longer_than_ms:
            return False
        return self.matches is None or bool(self.matches(transaction.transactional_id))


def list_transactions(machine: TransactionMachine, filters: Filters, now_ms: int) -> list[ListedTransaction]:
    return [
        ListedTransaction(
            transactional_id=found.transactional_id,
            producer_id=found.producer_id,
            transaction_state=found.state.label,
        )
        for found in machine.transactions.values()
        if filters.accept(found, now_ms)
    ]
