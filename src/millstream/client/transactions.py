"""Transactions, step by step: the calls that one producer, or a driver with many writers, puts together.

`init_producer_id` (in `produce`) opens the way: its id and epoch go into every batch. Where the cluster has finalized
transaction.version 2 (KIP-890), a write adds its partition by itself and an end answers with the next epoch. Elsewhere
partitions are added first, and the versions that imply the new way are not used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from millstream.client.client import CoordinatorKind, CoordinatorOf
from millstream.client.errors import partition_subject, refuse
from millstream.client.grouping import by_topic
from millstream.client.produce import ProducerId
from millstream.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from millstream.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from millstream.protocol.messages.end_txn import EndTxnRequest
from millstream.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.groups import Committed

IMPLICIT_SINCE: Final = 2
# The last versions that don't imply transaction.version 2.
_ADD_PARTITIONS_BY_CLIENTS: Final = 3
_EXPLICIT_COMMIT: Final = 4
_EXPLICIT_END: Final = 4
_EXPLICIT_PRODUCE: Final = 11
_ANY_VERSION: Final = 32767


@dataclass(frozen=True, slots=True)
class Transaction:
    """Whose transactions these are: enough to write to them from another process."""

    id: str
    producer: ProducerId
    implicit: bool

    @property
    def produce_version_max(self) -> int:
        return _ANY_VERSION if self.implicit else _EXPLICIT_PRODUCE

    @property
    def subject(self) -> str:
        return f"transactional id {self.id!r}"

    @property
    def _coordinator(self) -> CoordinatorOf:
        return CoordinatorOf(self.id, CoordinatorKind.TRANSACTION)


async def adds_partitions_implicitly(client: Client) -> bool:
    """Whether the cluster has finalized transaction.version 2."""
    connection = await client.nodes.to_any()
    return connection.features.get("transaction.version", 0) >= IMPLICIT_SINCE


async def add_partitions(client: Client, transaction: Transaction, places: Iterable[TopicPartition]) -> None:
    """Make partitions part of the transaction, before anything is written to them."""
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=indexes) for topic, indexes in by_topic(places).items()]
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transaction.id,
        v3_and_below_producer_id=transaction.producer.id,
        v3_and_below_producer_epoch=transaction.producer.epoch,
        v3_and_below_topics=topics,
    )

    async def attempt() -> None:
        response = await client.call(request, node=transaction._coordinator, at_most=_ADD_PARTITIONS_BY_CLIENTS)
        for topic in response.results_by_topic_v3_and_below:
            for result in topic.results_by_partition:
                subject = f"{transaction.subject}, {partition_subject(topic.name, result.partition_index)}"
                refuse(result.partition_error_code, subject=subject)

    await client.retrying(attempt, past_silence=True)


async def commit_offsets_in(
    client: Client, transaction: Transaction, group: str, offsets: Mapping[TopicPartition, Committed]
) -> None:
    """Store a group's offsets when, and only when, the transaction commits."""
    if not transaction.implicit:
        await _add_offsets(client, transaction, group)
    request = TxnOffsetCommitRequest(
        transactional_id=transaction.id,
        group_id=group,
        producer_id=transaction.producer.id,
        producer_epoch=transaction.producer.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[topic, index].offset,
                        committed_leader_epoch=offsets[topic, index].leader_epoch,
                        committed_metadata=offsets[topic, index].metadata,
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(offsets).items()
        ],
    )

    async def attempt() -> None:
        response = await client.call(
            request,
            node=CoordinatorOf(group),
            at_most=_ANY_VERSION if transaction.implicit else _EXPLICIT_COMMIT,
        )
        for topic in response.topics:
            for part in topic.partitions:
                subject = f"{transaction.subject}, {partition_subject(topic.name, part.partition_index)}"
                refuse(part.error_code, subject=subject)

    await client.retrying(attempt, past_silence=True)


async def _add_offsets(client: Client, transaction: Transaction, group: str) -> None:
    request = AddOffsetsToTxnRequest(
        transactional_id=transaction.id,
        producer_id=transaction.producer.id,
        producer_epoch=transaction.producer.epoch,
        group_id=group,
    )

    async def attempt() -> None:
        response = await client.call(request, node=transaction._coordinator)
        refuse(response.error_code, subject=transaction.subject)

    await client.retrying(attempt, past_silence=True)


async def end_transaction(client: Client, transaction: Transaction, *, commit: bool) -> ProducerId:
    """Commit or abort; gives the producer id and epoch to go on with."""
    request = EndTxnRequest(
        transactional_id=transaction.id,
        producer_id=transaction.producer.id,
        producer_epoch=transaction.producer.epoch,
        committed=commit,
    )

    async def attempt() -> ProducerId:
        response = await client.call(
            request, node=transaction._coordinator, at_most=_ANY_VERSION if transaction.implicit else _EXPLICIT_END
        )
        refuse(response.error_code, subject=transaction.subject)
        if response.producer_id < 0:
            return transaction.producer
        return ProducerId(response.producer_id, response.producer_epoch)

    return await client.retrying(attempt, past_silence=True)
