"""ListPartitionReassignments: the moves that go on."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.metadata.decide_reassignments import list_reassignments
from millstream.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from millstream.security.operations import needs_of

(_DESCRIBE,) = needs_of(ListPartitionReassignmentsRequest)


@handles(ListPartitionReassignmentsRequest, versions="0", forwards=True)
def list_partition_reassignments(
    request: ListPartitionReassignmentsRequest, ctx: Context
) -> ListPartitionReassignmentsResponse:
    if not _DESCRIBE.granted(ctx.allows):
        return ListPartitionReassignmentsResponse(
            error_code=_DESCRIBE.refusal, error_message="Describing the cluster is not allowed.", topics=[]
        )
    return list_reassignments(ctx.broker.image, request)
