"""Metadata: brokers, topics and leaders; and topics that do not exist yet are made where that is allowed.

Kafka creates a topic behind its answer and lets the client ask again. Here the answer waits for the commit: the client
gets a topic that is there and led. Where nothing has to be made the answer needs no task.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.broker.addresses import address_for
from millstream.broker.dispatch import Context, handles
from millstream.broker.forwarding import create_topics
from millstream.metadata.automatic_topics import automatic_topic
from millstream.metadata.describe_topics import NOT_ASKED_FOR, View, asks_for_all, describe_topics, unknown_topic
from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import ErrorCode, NotController, RequestTimedOut
from millstream.protocol.messages.create_topics import CreateTopicsRequest
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataResponse, MetadataResponseTopic
from millstream.protocol.uuid import ZERO_UUID
from millstream.security.operations import CLUSTER_NAME, ResourceType, authorized_operations, needs_of
from millstream.settings import AUTO_CREATE_TOPICS_ENABLE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

_DESCRIBE, _, _DESCRIBE_CLUSTER = needs_of(MetadataRequest)
AUTO_CREATION_IS_A_WISH_SINCE = 4
# Versions 10 and 11 have the field, but what it means was settled in 12 (KIP-516).
TOPIC_IDS_SINCE = 12


@handles(MetadataRequest, versions="0-13")
def metadata(request: MetadataRequest, ctx: Context) -> MetadataResponse | Awaitable[MetadataResponse]:
    if ctx.version < TOPIC_IDS_SINCE and any(
        topic.topic_id != ZERO_UUID or topic.name is None for topic in request.topics or ()
    ):
        return _invalid(request)
    missing = _to_create(request, ctx)
    return _create_and_answer(missing, request, ctx) if missing else _answer(request, ctx, {})


def _invalid(request: MetadataRequest) -> MetadataResponse:
    topics = [
        MetadataResponseTopic(
            error_code=ErrorCode.INVALID_REQUEST, name=topic.name or "", topic_id=topic.topic_id, partitions=[]
        )
        for topic in request.topics or ()
    ]
    return MetadataResponse(brokers=[], topics=topics)


def _to_create(request: MetadataRequest, ctx: Context) -> list[str]:
    """The topics that are asked for by name, could exist, and do not."""
    wished = ctx.version < AUTO_CREATION_IS_A_WISH_SINCE or request.allow_auto_topic_creation
    if not wished or asks_for_all(request, ctx.version) or not ctx.broker.settings[AUTO_CREATE_TOPICS_ENABLE]:
        return []
    known = ctx.broker.image.topics.by_name
    missing = dict.fromkeys(
        topic.name
        for topic in request.topics or ()
        if topic.name is not None and topic.name not in known and topic.topic_id == ZERO_UUID
    )
    return [
        name
        for name in missing
        if name != METADATA_TOPIC
        and unknown_topic(name) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        and _DESCRIBE.granted(ctx.allows, name)
    ]


async def _create_and_answer(names: list[str], request: MetadataRequest, ctx: Context) -> MetadataResponse:
    broker = ctx.broker
    creation = CreateTopicsRequest(topics=[automatic_topic(name, broker.settings) for name in names])
    try:
        created = await create_topics(broker, creation, ctx)
    except (NotController, RequestTimedOut):
        # No controller is active: the client hears that the topics are missing, and asks again.
        return _answer(request, ctx, {})
    # Somebody else may have been faster: then it is there, and found below.
    refusals = {
        topic.name: ErrorCode(topic.error_code)
        for topic in created.topics
        if topic.error_code not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}
    }
    return _answer(request, ctx, refusals)


def _answer(request: MetadataRequest, ctx: Context, refusals: Mapping[str, ErrorCode]) -> MetadataResponse:
    broker = ctx.broker
    with_operations = request.include_topic_authorized_operations
    view = View(
        broker.image,
        partial(address_for, ctx),
        partial(_DESCRIBE.granted, ctx.allows),
        partial(authorized_operations, ctx.allows, ResourceType.TOPIC) if with_operations else lambda _: NOT_ASKED_FOR,
    )
    return MetadataResponse(
        brokers=view.brokers(),
        cluster_id=broker.cluster_id,
        # Any broker takes what is meant for the controller; the one that is being asked is surely there.
        controller_id=broker.node_id,
        topics=describe_topics(view, request, ctx.version, refusals),
        cluster_authorized_operations=_cluster_operations(request, ctx),
    )


def _cluster_operations(request: MetadataRequest, ctx: Context) -> int:
    if not request.include_cluster_authorized_operations:
        return NOT_ASKED_FOR
    if not _DESCRIBE_CLUSTER.granted(ctx.allows):
        return 0
    return authorized_operations(ctx.allows, ResourceType.CLUSTER, CLUSTER_NAME)
