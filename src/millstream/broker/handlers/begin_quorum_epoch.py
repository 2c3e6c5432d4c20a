"""BeginQuorumEpoch: the leader of the metadata quorum makes itself known."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.quorum_serving import is_other_cluster, is_other_voter, leader_address
from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.begin_quorum_epoch import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    BeginQuorumEpochResponsePartitionData,
    BeginQuorumEpochResponseTopicData,
    NodeEndpoint,
)
from millstream.quorum.events import Answer, LeaderAnnounced
from millstream.quorum.roles import ReplicaKey
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(BeginQuorumEpochRequest)


@handles(BeginQuorumEpochRequest, versions="0-1")
def begin_quorum_epoch(request: BeginQuorumEpochRequest, ctx: Context) -> BeginQuorumEpochResponse:
    controller = ctx.broker.controller
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return BeginQuorumEpochResponse(error_code=_CLUSTER_ACTION.refusal, topics=[])
    if is_other_cluster(controller, request.cluster_id):
        return BeginQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=[])
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return BeginQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST, topics=[])
    told = request.topics[0].partitions[0]
    if (request.topics[0].topic_name, told.partition_index) != (METADATA_TOPIC, 0):
        return BeginQuorumEpochResponse(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topics=[])
    answer: object = Answer(ErrorCode.INVALID_VOTER_KEY)
    if not is_other_voter(controller, ReplicaKey(request.voter_id, told.voter_directory_id)):
        for endpoint in request.leader_endpoints[:1]:
            controller.learn_address(told.leader_id, endpoint.host, endpoint.port)
        answer = controller.log.step(LeaderAnnounced(told.leader_id, told.leader_epoch))
    assert isinstance(answer, Answer)
    quorum = controller.log.quorum
    partition = BeginQuorumEpochResponsePartitionData(
        partition_index=0, error_code=answer.error, leader_id=quorum.leader_id, leader_epoch=quorum.epoch
    )
    return BeginQuorumEpochResponse(
        topics=[BeginQuorumEpochResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=[
            NodeEndpoint(node_id=at, host=host, port=port) for at, host, port in leader_address(controller)
        ],
    )
