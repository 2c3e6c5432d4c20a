"""AlterPartitionReassignments: move partitions between brokers, or call a move off."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_changes import change_metadata
from millstream.metadata.decide_reassignments import decide_alter_reassignments
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from millstream.security.operations import needs_of

(_ALTER,) = needs_of(AlterPartitionReassignmentsRequest)


@handles(AlterPartitionReassignmentsRequest, versions="0-1", forwards=True)
async def alter_partition_reassignments(
    request: AlterPartitionReassignmentsRequest, ctx: Context
) -> AlterPartitionReassignmentsResponse:
    if not _ALTER.granted(ctx.allows):
        return AlterPartitionReassignmentsResponse(
            error_code=_ALTER.refusal, error_message="Altering the cluster is not allowed.", responses=[]
        )
    return await change_metadata(ctx, request, lambda image, _: decide_alter_reassignments(image, request))
