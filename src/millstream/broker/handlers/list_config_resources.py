"""ListConfigResources: what can have configs (KIP-1142); in version 0 client-metrics subscriptions only."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.describe_configs import list_config_resources as list_resources
from millstream.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from millstream.security.operations import needs_of

(_DESCRIBE,) = needs_of(ListConfigResourcesRequest)


@handles(ListConfigResourcesRequest, versions="0-1")
def list_config_resources(request: ListConfigResourcesRequest, ctx: Context) -> ListConfigResourcesResponse:
    if not _DESCRIBE.granted(ctx.allows):
        return ListConfigResourcesResponse(error_code=_DESCRIBE.refusal, config_resources=[])
    return list_resources(ctx.broker.image, request, version=ctx.version)
