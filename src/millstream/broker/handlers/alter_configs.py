"""AlterConfigs: replace all settings of a resource; superseded by IncrementalAlterConfigs, still sent by old tools."""

from __future__ import annotations

from millstream.broker.config_access import config_refusal
from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_configs import ConfigAuthority, decide_alter_configs
from millstream.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse


@handles(AlterConfigsRequest, versions="0-2", forwards=True)
async def alter_configs(request: AlterConfigsRequest, ctx: Context) -> AlterConfigsResponse:
    authority = ConfigAuthority(ctx.broker.settings, ctx.broker.node_id, config_refusal(AlterConfigsRequest, ctx))
    return await change_metadata(ctx, request, lambda image, _: decide_alter_configs(image, request, authority))
