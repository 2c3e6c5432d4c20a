"""Vote: a candidate asks for this node's vote, or whether it would get it."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.quorum_serving import is_other_cluster, is_other_voter, leader_address
from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.vote import (
    NodeEndpoint,
    PartitionData,
    VoteRequest,
    VoteResponse,
    VoteResponsePartitionData,
    VoteResponseTopicData,
)
from millstream.quorum.events import Answer, VoteRequested
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import ReplicaKey
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(VoteRequest)


@handles(VoteRequest, versions="0-2")
def vote(request: VoteRequest, ctx: Context) -> VoteResponse:
    controller = ctx.broker.controller
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return VoteResponse(error_code=_CLUSTER_ACTION.refusal, topics=[])
    if is_other_cluster(controller, request.cluster_id):
        return VoteResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=[])
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return VoteResponse(error_code=ErrorCode.INVALID_REQUEST, topics=[])
    asked = request.topics[0].partitions[0]
    if (request.topics[0].topic_name, asked.partition_index) != (METADATA_TOPIC, 0):
        return VoteResponse(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topics=[])
    answer = _answer(asked, request.voter_id, ctx)
    quorum = controller.log.quorum
    partition = VoteResponsePartitionData(
        partition_index=0,
        error_code=answer.error,
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        vote_granted=answer.granted,
    )
    return VoteResponse(
        topics=[VoteResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=[
            NodeEndpoint(node_id=at, host=host, port=port) for at, host, port in leader_address(controller)
        ],
    )


def _answer(asked: PartitionData, voter_id: int, ctx: Context) -> Answer:
    controller = ctx.broker.controller
    if is_other_voter(controller, ReplicaKey(voter_id, asked.voter_directory_id)):
        return Answer(ErrorCode.INVALID_VOTER_KEY)
    if asked.last_offset < 0 or asked.last_offset_epoch < 0 or asked.last_offset_epoch > asked.replica_epoch:
        return Answer(ErrorCode.INVALID_REQUEST)
    answer = controller.log.step(
        VoteRequested(
            ReplicaKey(asked.replica_id, asked.replica_directory_id),
            asked.replica_epoch,
            LogPosition(asked.last_offset, asked.last_offset_epoch),
            asked.pre_vote,
        )
    )
    assert isinstance(answer, Answer)
    return answer
