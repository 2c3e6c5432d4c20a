"""AddRaftVoter: a controller that follows the quorum becomes one of its voters (KIP-853)."""

from __future__ import annotations

import asyncio

from millstream.broker.dispatch import Context, handles
from millstream.broker.quorum_serving import is_other_cluster
from millstream.broker.quorum_voters import VoterChangeRefused
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from millstream.quorum.voters import Voter, VoterEndpoint
from millstream.security.operations import needs_of

(_ALTER,) = needs_of(AddRaftVoterRequest)


@handles(AddRaftVoterRequest, versions="0-1", forwards=True)
async def add_raft_voter(request: AddRaftVoterRequest, ctx: Context) -> AddRaftVoterResponse:
    controller = ctx.broker.controller
    if not _ALTER.granted(ctx.allows):
        return AddRaftVoterResponse(error_code=_ALTER.refusal, error_message="Changing the cluster is not allowed.")
    if is_other_cluster(controller, request.cluster_id):
        return AddRaftVoterResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, error_message="Another cluster.")
    voter = Voter(
        request.voter_id,
        request.voter_directory_id,
        tuple(VoterEndpoint(each.name, each.host, each.port) for each in request.listeners),
    )
    # Apache Kafka never looks at the request's timeout: with none, its own limit counts, which is that of the quorum.
    timeout_ms = request.timeout_ms if request.timeout_ms > 0 else controller.config.quorum.request_timeout_ms
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            offset = await controller.voter_changes.add(voter, timeout_ms)
            if request.ack_when_committed:
                await controller.committed_to(offset)
    except VoterChangeRefused as refused:
        return AddRaftVoterResponse(error_code=refused.code, error_message=str(refused))
    except TimeoutError:
        return AddRaftVoterResponse(
            error_code=ErrorCode.REQUEST_TIMED_OUT, error_message="The change was not committed in time."
        )
    except BrokerError as error:
        return AddRaftVoterResponse(error_code=error.code, error_message=str(error))
    return AddRaftVoterResponse(error_message=None)
