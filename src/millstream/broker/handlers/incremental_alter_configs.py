"""IncrementalAlterConfigs: change single settings of topics, brokers, groups and client metrics."""

from __future__ import annotations

from millstream.broker.config_access import config_refusal
from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_configs import ConfigAuthority, decide_incremental_alter_configs
from millstream.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@handles(IncrementalAlterConfigsRequest, versions="0-1", forwards=True)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, ctx: Context
) -> IncrementalAlterConfigsResponse:
    authority = ConfigAuthority(
        ctx.broker.settings, ctx.broker.node_id, config_refusal(IncrementalAlterConfigsRequest, ctx)
    )
    return await change_metadata(
        ctx, request, lambda image, _: decide_incremental_alter_configs(image, request, authority)
    )
