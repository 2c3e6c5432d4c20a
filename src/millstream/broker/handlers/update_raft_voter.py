"""UpdateRaftVoter: a voter has moved, or learnt another kraft.version, and says so to the leader (KIP-853).

The voters of a static quorum say in this way who they are, in case it becomes a dynamic one (quorum/upgrade.py).
"""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.quorum_serving import is_other_cluster, leader_address
from millstream.broker.quorum_voters import VoterChangeRefused
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.update_raft_voter import (
    CurrentLeader,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from millstream.quorum.voters import DYNAMIC, Voter, VoterEndpoint
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(UpdateRaftVoterRequest)


@handles(UpdateRaftVoterRequest, versions="0")
async def update_raft_voter(request: UpdateRaftVoterRequest, ctx: Context) -> UpdateRaftVoterResponse:
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return UpdateRaftVoterResponse(error_code=_CLUSTER_ACTION.refusal)
    if is_other_cluster(ctx.broker.controller, request.cluster_id):
        return UpdateRaftVoterResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID)
    code = await _update(request, ctx)
    response = UpdateRaftVoterResponse(error_code=code)
    for leader_id, host, port in leader_address(ctx.broker.controller):
        epoch = ctx.broker.controller.log.epoch
        response.current_leader = CurrentLeader(leader_id=leader_id, leader_epoch=epoch, host=host, port=port)
    return response


async def _update(request: UpdateRaftVoterRequest, ctx: Context) -> ErrorCode:
    controller = ctx.broker.controller
    quorum = controller.log.quorum
    epoch = request.current_leader_epoch
    if epoch != quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH if epoch < quorum.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH
    voter = Voter(
        request.voter_id,
        request.voter_directory_id,
        tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners),
        request.k_raft_version_feature.max_supported_version,
    )
    try:
        if quorum.kraft_version < DYNAMIC:
            return controller.voter_changes.introduce(voter, epoch)
        await controller.committed_to(controller.voter_changes.update(voter))
    except VoterChangeRefused as refused:
        return refused.code
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE
