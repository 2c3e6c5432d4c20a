"""AssignReplicasToDirs: a broker with several log directories tells in which of them its replicas live (KIP-858)."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.decide_directories import decide_assign_replicas_to_dirs
from millstream.protocol.errors import BrokerError
from millstream.protocol.messages.assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(AssignReplicasToDirsRequest)


@handles(AssignReplicasToDirsRequest, versions="0")
async def assign_replicas_to_dirs(request: AssignReplicasToDirsRequest, ctx: Context) -> AssignReplicasToDirsResponse:
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return AssignReplicasToDirsResponse(error_code=_CLUSTER_ACTION.refusal, directories=[])
    try:
        return await ctx.broker.controller.submit(lambda image, _: decide_assign_replicas_to_dirs(image, request))
    except BrokerError as refusal:
        return AssignReplicasToDirsResponse(error_code=refusal.code, directories=[])
