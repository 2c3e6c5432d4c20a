"""CreatePartitions: a topic grows."""

from __future__ import annotations

from functools import partial

from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_create_partitions import decide_create_partitions
from millstream.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from millstream.security.operations import needs_of

(_ALTER,) = needs_of(CreatePartitionsRequest)


@handles(CreatePartitionsRequest, versions="0-3", forwards=True)
async def create_partitions(request: CreatePartitionsRequest, ctx: Context) -> CreatePartitionsResponse:
    broker = ctx.broker
    may_alter = partial(_ALTER.granted, ctx.allows)
    return await change_metadata(
        ctx,
        request,
        lambda image, _: decide_create_partitions(
            image,
            request,
            settings=broker.settings,
            random=broker.ports.random,
            may_alter=may_alter,
        ),
        may_change=may_alter,
    )
