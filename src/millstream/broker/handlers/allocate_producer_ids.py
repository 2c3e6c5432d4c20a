"""AllocateProducerIds: a broker asks the controller for a block of producer ids."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.broker_lifecycle import decide_allocate_producer_ids
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(AllocateProducerIdsRequest)


@handles(AllocateProducerIdsRequest, versions="0")
async def allocate_producer_ids(request: AllocateProducerIdsRequest, ctx: Context) -> AllocateProducerIdsResponse:
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return _refused(_CLUSTER_ACTION.refusal)
    try:
        block = await ctx.broker.controller.submit(
            lambda image, _: decide_allocate_producer_ids(image, request.broker_id, request.broker_epoch)
        )
    except BrokerError as refusal:
        return _refused(refusal.code)
    return AllocateProducerIdsResponse(producer_id_start=block.start, producer_id_len=len(block))


def _refused(code: ErrorCode) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=code, producer_id_start=0, producer_id_len=0)
