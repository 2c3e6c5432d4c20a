"""Which transactions hang: partitions wait for the end of them, and no coordinator knows that it has to end them.

From the candidates (open in a partition, and silent for longer than any transaction may last) those are taken away
whose coordinator still has the partition on its list: they will end by themselves.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.client.admin.topics import list_topics
from millstream.client.admin.transactions import Transaction, describe_transactions, list_transactions, producers_on
from millstream.client.errors import Refusal
from millstream.client.grouping import by_leader

if TYPE_CHECKING:
    from collections.abc import Collection

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction as one of its partitions sees it."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp_ms: int


async def partitions_on(client: Client, broker_id: int | None, topic: str | None) -> list[TopicPartition]:
    """Partitions with a replica on the broker, of one topic or of all."""
    if topic is not None:
        topics = [await client.metadata.topic(topic)]
    else:
        topics = await list_topics(client)
    return [
        (found.name, partition.index)
        for found in topics
        for partition in found.partitions
        if broker_id is None or broker_id in partition.replicas
    ]


async def open_transactions(
    client: Client, partitions: Collection[TopicPartition], *, broker_id: int | None = None
) -> list[OpenTransaction]:
    """Open transactions as the leaders see them, or as one broker's replicas do."""
    places = {broker_id: list(partitions)} if broker_id is not None else await by_leader(client, partitions)
    answers = await asyncio.gather(*(producers_on(client, node, each) for node, each in places.items() if each))
    found: list[OpenTransaction] = []
    for answer in answers:
        for (topic, index), producers in answer.items():
            if isinstance(producers, Refusal):
                raise producers
            found += [
                OpenTransaction(
                    topic,
                    index,
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    coordinator_epoch=producer.coordinator_epoch,
                    start_offset=producer.current_txn_start_offset,
                    last_timestamp_ms=producer.last_timestamp,
                )
                for producer in producers
                if producer.current_txn_start_offset >= 0
            ]
    return sorted(found, key=lambda each: (each.topic, each.partition, each.start_offset))


async def find_hanging(
    client: Client,
    partitions: Collection[TopicPartition],
    *,
    silent_for_ms: int,
    now_ms: int,
    broker_id: int | None = None,
) -> list[OpenTransaction]:
    """Transactions open in these partitions, silent for longer, and unknown to any coordinator."""
    candidates = [
        each
        for each in await open_transactions(client, partitions, broker_id=broker_id)
        if now_ms - each.last_timestamp_ms > silent_for_ms
    ]
    if not candidates:
        return []
    # An open transaction that nobody lists is one whose id has expired: it hangs for certain.
    producer_ids = sorted({each.producer_id for each in candidates})
    listed = await list_transactions(client, producer_ids=producer_ids)
    described = await describe_transactions(client, [found.id for found in listed])
    known = {
        (found.producer_id, place)
        for found in described.values()
        if isinstance(found, Transaction)
        for place in found.partitions
    }
    return [each for each in candidates if (each.producer_id, (each.topic, each.partition)) not in known]
