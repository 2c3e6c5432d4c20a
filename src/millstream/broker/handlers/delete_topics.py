"""DeleteTopics: gone from the metadata when answered; files follow in the background."""

from __future__ import annotations

from functools import partial

from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_delete_topics import decide_delete_topics
from millstream.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from millstream.security.operations import needs_of
from millstream.settings import DELETE_TOPIC_ENABLE

_DELETE, _DESCRIBE = needs_of(DeleteTopicsRequest)


@handles(DeleteTopicsRequest, versions="1-6", forwards=True)
async def delete_topics(request: DeleteTopicsRequest, ctx: Context) -> DeleteTopicsResponse:
    may_delete = partial(_DELETE.granted, ctx.allows)
    return await change_metadata(
        ctx,
        request,
        lambda image, _: decide_delete_topics(
            image,
            request,
            version=ctx.version,
            enabled=ctx.broker.settings[DELETE_TOPIC_ENABLE],
            may_delete=may_delete,
            may_describe=partial(_DESCRIBE.granted, ctx.allows),
        ),
        may_change=may_delete,
    )
