"""AlterPartition: a leader asks the active controller to change who is in sync (KIP-497)."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.decide_alter_partition import decide_alter_partition
from millstream.protocol.errors import BrokerError
from millstream.protocol.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(AlterPartitionRequest)


@handles(AlterPartitionRequest, versions="2-3")
async def alter_partition(request: AlterPartitionRequest, ctx: Context) -> AlterPartitionResponse:
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return AlterPartitionResponse(error_code=_CLUSTER_ACTION.refusal, topics=[])
    try:
        return await ctx.broker.controller.submit(lambda image, _: decide_alter_partition(image, request, ctx.version))
    except BrokerError as refusal:
        return AlterPartitionResponse(error_code=refusal.code, topics=[])
