"""RemoveRaftVoter: a controller ceases to be a voter (KIP-853). The leader may remove itself: then it resigns."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.quorum_serving import is_other_cluster
from millstream.broker.quorum_voters import VoterChangeRefused
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from millstream.quorum.roles import ReplicaKey
from millstream.security.operations import needs_of

(_ALTER,) = needs_of(RemoveRaftVoterRequest)


@handles(RemoveRaftVoterRequest, versions="0", forwards=True)
async def remove_raft_voter(request: RemoveRaftVoterRequest, ctx: Context) -> RemoveRaftVoterResponse:
    controller = ctx.broker.controller
    if not _ALTER.granted(ctx.allows):
        return RemoveRaftVoterResponse(error_code=_ALTER.refusal, error_message="Changing the cluster is not allowed.")
    if is_other_cluster(controller, request.cluster_id):
        return RemoveRaftVoterResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, error_message="Another cluster.")
    try:
        offset = controller.voter_changes.remove(ReplicaKey(request.voter_id, request.voter_directory_id))
        await controller.committed_to(offset)
    except VoterChangeRefused as refused:
        return RemoveRaftVoterResponse(error_code=refused.code, error_message=str(refused))
    except BrokerError as error:
        return RemoveRaftVoterResponse(error_code=error.code, error_message=str(error))
    return RemoveRaftVoterResponse(error_message=None)
