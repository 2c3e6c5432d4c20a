"""EndQuorumEpoch: the leader of the metadata quorum gives up its epoch."""

from __future__ import annotations

from millstream.broker.dispatch import Context, handles
from millstream.broker.quorum_serving import is_other_cluster, leader_address
from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.end_quorum_epoch import (
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    EndQuorumEpochResponsePartitionData,
    EndQuorumEpochResponseTopicData,
    NodeEndpoint,
)
from millstream.quorum.events import Answer, LeaderRetired
from millstream.security.operations import needs_of

(_CLUSTER_ACTION,) = needs_of(EndQuorumEpochRequest)
CANDIDATES_SINCE = 1


@handles(EndQuorumEpochRequest, versions="0-1")
def end_quorum_epoch(request: EndQuorumEpochRequest, ctx: Context) -> EndQuorumEpochResponse:
    controller = ctx.broker.controller
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return EndQuorumEpochResponse(error_code=_CLUSTER_ACTION.refusal, topics=[])
    if is_other_cluster(controller, request.cluster_id):
        return EndQuorumEpochResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=[])
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return EndQuorumEpochResponse(error_code=ErrorCode.INVALID_REQUEST, topics=[])
    told = request.topics[0].partitions[0]
    if (request.topics[0].topic_name, told.partition_index) != (METADATA_TOPIC, 0):
        return EndQuorumEpochResponse(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topics=[])
    successors = (
        tuple(each.candidate_id for each in told.preferred_candidates)
        if ctx.version >= CANDIDATES_SINCE
        else tuple(told.preferred_successors)
    )
    answer = controller.log.step(LeaderRetired(told.leader_id, told.leader_epoch, successors))
    assert isinstance(answer, Answer)
    quorum = controller.log.quorum
    partition = EndQuorumEpochResponsePartitionData(
        partition_index=0, error_code=answer.error, leader_id=quorum.leader_id, leader_epoch=quorum.epoch
    )
    return EndQuorumEpochResponse(
        topics=[EndQuorumEpochResponseTopicData(topic_name=METADATA_TOPIC, partitions=[partition])],
        node_endpoints=[
            NodeEndpoint(node_id=at, host=host, port=port) for at, host, port in leader_address(controller)
        ],
    )
