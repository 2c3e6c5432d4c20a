"""CreateTopics: decided by the controller, answered when the topics are committed and led."""

from __future__ import annotations

from functools import partial

from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_create_topics import decide_create_topics
from millstream.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from millstream.security.operations import needs_of

_CREATE, _SEE_CONFIGS = needs_of(CreateTopicsRequest)


@handles(CreateTopicsRequest, versions="2-7", forwards=True)
async def create_topics(request: CreateTopicsRequest, ctx: Context) -> CreateTopicsResponse:
    broker = ctx.broker
    may_create = partial(_CREATE.granted, ctx.allows)
    return await change_metadata(
        ctx,
        request,
        lambda image, _: decide_create_topics(
            image,
            request,
            settings=broker.settings,
            random=broker.ports.random,
            may_create=may_create,
            may_see_configs=partial(_SEE_CONFIGS.granted, ctx.allows),
        ),
        may_change=may_create,
    )
