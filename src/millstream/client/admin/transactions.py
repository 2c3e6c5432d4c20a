"""Transactions: which are open, who holds them, and an end for those that nobody will end (KIP-664).

A transaction hangs when a partition waits for a marker that no coordinator will ever send: the last stable offset
stands still behind it, and readers of committed records with it. It is found by comparing what partitions know of
their producers with what coordinators know of transactions, and ended with an abort marker written from outside.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.client.client import CoordinatorKind, CoordinatorOf, LeaderOf
from millstream.client.errors import Refusal, partition_subject, refuse
from millstream.client.grouping import by_topic
from millstream.client.produce import init_producer_id
from millstream.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)
from millstream.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from millstream.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from millstream.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.protocol.messages.describe_producers import ProducerState

# The versions of ListTransactions that first filter by age (KIP-994) and by name (KIP-1152).
FILTERS_DURATION, FILTERS_NAMES = 1, 2


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id as its coordinator lists it."""

    id: str
    coordinator_id: int
    producer_id: int
    state: str


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transactional id in detail; `started_ms` is negative while no transaction is open."""

    id: str
    coordinator_id: int
    producer_id: int
    producer_epoch: int
    state: str
    timeout_ms: int
    started_ms: int
    partitions: tuple[TopicPartition, ...]


async def list_transactions(
    client: Client,
    *,
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    running_longer_than_ms: int = -1,
    pattern: str | None = None,
) -> list[ListedTransaction]:
    """The transactional ids of all coordinators, by name."""
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=running_longer_than_ms,
        transactional_id_pattern=pattern,
    )
    at_least = FILTERS_NAMES if pattern else FILTERS_DURATION if running_longer_than_ms >= 0 else 0

    async def ask(node: int) -> list[ListedTransaction]:
        async def attempt() -> list[ListedTransaction]:
            response: ListTransactionsResponse = await client.call(request, node=node, at_least=at_least)
            refuse(response.error_code)
            return [
                ListedTransaction(found.transactional_id, node, found.producer_id, found.transaction_state)
                for found in response.transaction_states
            ]

        return await client.retrying(attempt)

    await client.retrying(client.metadata.refresh_cluster)
    parts = await asyncio.gather(*(ask(node) for node in client.nodes.brokers))
    return sorted((found for part in parts for found in part), key=lambda found: (found.id, found.coordinator_id))


async def describe_transactions(client: Client, ids: Sequence[str]) -> dict[str, Transaction | Refusal]:
    """The named transactional ids, in the order of the names."""

    async def one(name: str) -> Transaction | Refusal:
        async def attempt() -> Transaction:
            node = await client.resolve(CoordinatorOf(name, CoordinatorKind.TRANSACTION))
            response: DescribeTransactionsResponse = await client.call(
                DescribeTransactionsRequest(transactional_ids=[name]), node=node
            )
            (found,) = response.transaction_states
            refuse(found.error_code, subject=f"transactional id {name!r}")
            return Transaction(
                id=name,
                coordinator_id=node,
                producer_id=found.producer_id,
                producer_epoch=found.producer_epoch,
                state=found.transaction_state,
                timeout_ms=found.transaction_timeout_ms,
                started_ms=found.transaction_start_time_ms,
                partitions=tuple((topic.topic, index) for topic in found.topics for index in topic.partitions),
            )

        try:
            return await client.retrying(attempt)
        except Refusal as refusal:
            return refusal

    outcomes = await asyncio.gather(*(one(name) for name in ids))
    return dict(zip(ids, outcomes, strict=True))


async def producers_on(
    client: Client, node: int, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, list[ProducerState] | Refusal]:
    """The producers that one broker remembers for replicas of its own, leader or not."""
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in by_topic(partitions).items()]
    )

    async def attempt() -> dict[TopicPartition, list[ProducerState] | Refusal]:
        response: DescribeProducersResponse = await client.call(request, node=node)
        return {
            (topic.name, part.partition_index): Refusal(
                part.error_code, part.error_message, subject=partition_subject(topic.name, part.partition_index)
            )
            if part.error_code
            else part.active_producers
            for topic in response.topics
            for part in topic.partitions
        }

    return await client.retrying(attempt)


async def write_abort_marker(
    client: Client, topic: str, partition: int, *, producer_id: int, producer_epoch: int, coordinator_epoch: int
) -> None:
    """End what a producer has open in one partition, past its coordinator; needs the right to act for the cluster.

    The coordinator epoch is the last one that the partition saw, so that a marker of the coordinator itself is never
    fenced by ours.
    """
    marker = WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
        coordinator_epoch=coordinator_epoch,
    )

    async def attempt() -> None:
        response: WriteTxnMarkersResponse = await client.call(
            WriteTxnMarkersRequest(markers=[marker]), node=LeaderOf(topic, partition)
        )
        result = response.markers[0].topics[0].partitions[0]
        refuse(result.error_code, subject=partition_subject(topic, partition))

    await client.retrying(attempt, topic=topic)


async def force_terminate(client: Client, transactional_id: str) -> None:
    """End what a transactional id has open by taking it over: its producer is fenced, the transaction aborted.

    An id that does not exist is created by this.
    """
    await init_producer_id(client, transactional_id=transactional_id)
