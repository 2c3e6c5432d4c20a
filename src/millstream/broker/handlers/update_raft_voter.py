"""UpdateRaftVoter: a voter has moved, or learnt another kraft.version, and says so to the leader (KIP-853)."""

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
    if request.current_leader_epoch < quorum.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if request.current_leader_epoch > quorum.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if quorum.leads and quorum.kraft_version < DYNAMIC:
        return ErrorCode.NONE  # fixed voters are where the settings say
    voter = Voter(
        request.voter_id,
        request.voter_directory_id,
        tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners),
        request.k_raft_version_feature.max_supported_version,
    )
    try:
        await controller.committed_to(controller.voter_changes.update(voter))
    except VoterChangeRefused as refused:
        return refused.code
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE
