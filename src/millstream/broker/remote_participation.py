"""Asking a transaction's coordinator on another broker whether partitions are part of the transaction (KIP-890).

The coordinator's broker is asked with AddPartitionsToTxn, from version 4 on the request between brokers. Where it
cannot be reached the answer is COORDINATOR_NOT_AVAILABLE for each partition, and the producer tries again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.coordinator import java_hash
from millstream.broker.dispatch import Deferred
from millstream.broker.peers import PeerUnreachable
from millstream.metadata.names import TRANSACTIONS_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.broker.node import Node

    Place = tuple[str, int]

TIMEOUT_MS = 10_000


def take_part(
    node: Node, transactional_id: str, producer_id: int, epoch: int, places: Sequence[Place], *, add: bool
) -> Deferred:
    """An ErrorCode for each partition: from the coordinator here, or from the broker that has it."""
    elsewhere = _coordinator(node, transactional_id)
    if elsewhere is None:
        return node.transactions.take_part(transactional_id, producer_id, epoch, places, add=add)
    deferred = Deferred()
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        verify_only=not add,
        topics=_topics(places),
    )
    node.background(_ask(node, elsewhere, transaction, places, deferred))
    return deferred


def _coordinator(node: Node, transactional_id: str) -> int | None:
    """The other broker that coordinates the id; None where it is this one, or nobody: then it is answered here."""
    topic = node.image.topics.by_name.get(TRANSACTIONS_TOPIC)
    if topic is None or not transactional_id:
        return None
    index = java_hash(transactional_id) % len(topic.partitions)
    leader = topic.partitions[index].leader
    return None if leader == node.node_id or node.endpoint_of(leader) is None else leader


async def _ask(
    node: Node,
    broker_id: int,
    transaction: AddPartitionsToTxnTransaction,
    places: Sequence[Place],
    deferred: Deferred,
) -> None:
    results = dict.fromkeys(places, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    address = node.endpoint_of(broker_id)
    try:
        if address is not None:
            request = AddPartitionsToTxnRequest(transactions=[transaction])
            answer = await node.peers.at(*address, "transactions").ask(request, timeout_ms=TIMEOUT_MS)
            if answer.error_code != ErrorCode.NONE:
                results = dict.fromkeys(places, ErrorCode(answer.error_code))
            for result in answer.results_by_transaction:
                for topic in result.topic_results:
                    for each in topic.results_by_partition:
                        results[topic.name, each.partition_index] = ErrorCode(each.partition_error_code)
    except PeerUnreachable:
        pass
    finally:
        deferred.finish(results)


def _topics(places: Sequence[Place]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, list[int]] = {}
    for name, index in places:
        topics.setdefault(name, []).append(index)
    return [AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in topics.items()]
