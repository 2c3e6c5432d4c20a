"""AddPartitionsToTxn: partitions become part of a transaction, or it is asked whether they are.

Up to version 3 it comes from producers, for one transaction. From version 4 on it comes from brokers, for many, and
needs CLUSTER_ACTION: who sends it is told by what they may do, not by what the request says about them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred, handles
from millstream.broker.gathering import gather
from millstream.broker.transaction_codes import fenced_since
from millstream.metadata.names import INTERNAL_TOPICS
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from millstream.security.operations import needs_of
from millstream.transactions.participants import decide_add_partitions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from millstream.metadata.image import MetadataImage
    from millstream.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction

_WRITE_TRANSACTION, _WRITE_TOPIC, _CLUSTER_ACTION = needs_of(AddPartitionsToTxnRequest)
FROM_BROKERS_SINCE = 4
PRODUCER_FENCED_SINCE = 2


@handles(AddPartitionsToTxnRequest, versions="0-5")
def add_partitions_to_txn(request: AddPartitionsToTxnRequest, ctx: Context) -> AddPartitionsToTxnResponse | Deferred:
    if ctx.version < FROM_BROKERS_SINCE:
        return _from_producer(request, ctx)
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return AddPartitionsToTxnResponse(error_code=_CLUSTER_ACTION.refusal)
    return _from_broker(request, ctx)


# --- producers


def _from_producer(request: AddPartitionsToTxnRequest, ctx: Context) -> AddPartitionsToTxnResponse | Deferred:
    transactional_id = request.v3_and_below_transactional_id
    topics = request.v3_and_below_topics

    def refused(code: ErrorCode) -> AddPartitionsToTxnResponse:
        code = fenced_since(PRODUCER_FENCED_SINCE, ctx.version, code)
        return _told(topics, dict.fromkeys(_places(topics), code))

    if not _WRITE_TRANSACTION.granted(ctx.allows, transactional_id):
        return refused(_WRITE_TRANSACTION.refusal)
    codes = _unusable(topics, ctx.broker.image, partial(_may_write, ctx))
    if codes:
        return _told(topics, codes)
    return ctx.broker.transactions.submit(
        transactional_id,
        lambda machine, _, now_ms: decide_add_partitions(
            machine,
            transactional_id,
            request.v3_and_below_producer_id,
            request.v3_and_below_producer_epoch,
            _places(topics),
            client_version=0,
            answer=_told(topics, dict.fromkeys(_places(topics), ErrorCode.NONE)),
            now_ms=now_ms,
        ),
        refuse=refused,
    )


def _may_write(ctx: Context, topic: str) -> bool:
    # Offsets become part of a transaction through AddOffsetsToTxn; no producer writes to Kafka's own topics.
    return topic not in INTERNAL_TOPICS and _WRITE_TOPIC.granted(ctx.allows, topic)


def _told(
    topics: list[AddPartitionsToTxnTopic], codes: Mapping[tuple[str, int], ErrorCode]
) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(topics, codes))


# --- brokers


def _from_broker(request: AddPartitionsToTxnRequest, ctx: Context) -> AddPartitionsToTxnResponse | Deferred:
    transactions = request.transactions
    asked = [_asked_by_broker(transaction, ctx) for transaction in transactions]

    def combine(answers: list[dict[tuple[str, int], ErrorCode]]) -> AddPartitionsToTxnResponse:
        results = zip(transactions, answers, strict=True)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=transaction.transactional_id, topic_results=_results(transaction.topics, codes)
                )
                for transaction, codes in results
            ]
        )

    return gather(asked, combine)  # type: ignore[no-any-return]


def _asked_by_broker(transaction: AddPartitionsToTxnTransaction, ctx: Context) -> Deferred:
    codes = _unusable(transaction.topics, ctx.broker.image, _anybody)
    if codes:
        refused = Deferred()
        refused.finish(codes)
        return refused
    return ctx.broker.transactions.take_part(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        _places(transaction.topics),
        add=not transaction.verify_only,
    )


def _anybody(_topic: str) -> bool:
    """Brokers write where their clients may; they have asked before."""
    return True


# --- both


def _unusable(
    topics: list[AddPartitionsToTxnTopic], image: MetadataImage, may_write: Callable[[str], bool]
) -> dict[tuple[str, int], ErrorCode]:
    """Why partitions cannot be added; empty if all can. All or none: those that could have been are told so."""
    codes = {}
    for topic in topics:
        known = image.topics.by_name.get(topic.name)
        allowed = may_write(topic.name)
        for index in topic.partitions:
            if not allowed:
                codes[topic.name, index] = _WRITE_TOPIC.refusal
            elif known is None or index not in known.partitions:
                codes[topic.name, index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return dict.fromkeys(_places(topics), ErrorCode.OPERATION_NOT_ATTEMPTED) | codes if codes else {}


def _places(topics: list[AddPartitionsToTxnTopic]) -> list[tuple[str, int]]:
    return [(topic.name, index) for topic in topics for index in topic.partitions]


def _results(
    topics: list[AddPartitionsToTxnTopic], codes: Mapping[tuple[str, int], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=codes[topic.name, index])
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
