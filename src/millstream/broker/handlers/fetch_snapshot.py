"""FetchSnapshot: a replica that has fallen behind the start of the metadata log takes a snapshot, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, handles
from millstream.broker.metadata_snapshot import SnapshotId
from millstream.broker.quorum_serving import is_other_cluster, leader_address
from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseSnapshotId,
    FetchSnapshotResponseTopicSnapshot,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionSnapshot,
)
from millstream.quorum.events import PieceRequested
from millstream.quorum.roles import ReplicaKey
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.broker.controller_node import ControllerNode

(_CLUSTER_ACTION,) = needs_of(FetchSnapshotRequest)


@handles(FetchSnapshotRequest, versions="0-1")
def fetch_snapshot(request: FetchSnapshotRequest, ctx: Context) -> FetchSnapshotResponse:
    controller = ctx.broker.controller
    if not _CLUSTER_ACTION.granted(ctx.allows):
        return FetchSnapshotResponse(error_code=_CLUSTER_ACTION.refusal, topics=[])
    if is_other_cluster(controller, request.cluster_id):
        return FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, topics=[])
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST, topics=[])
    asked = request.topics[0].partitions[0]
    answer = _nothing(asked, controller)
    if (request.topics[0].name, asked.partition) != (METADATA_TOPIC, 0):
        answer.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    else:
        _fill(answer, asked, controller, min(request.max_bytes, controller.config.quorum.snapshot_bytes_max), ctx)
        if answer.error_code == ErrorCode.NONE:
            replica = ReplicaKey(request.replica_id, asked.replica_directory_id)
            controller.log.step(PieceRequested(replica, asked.current_leader_epoch))
    return FetchSnapshotResponse(
        topics=[FetchSnapshotResponseTopicSnapshot(name=request.topics[0].name, partitions=[answer])],
        node_endpoints=[
            NodeEndpoint(node_id=at, host=host, port=port) for at, host, port in leader_address(controller)
        ],
    )


def _nothing(asked: PartitionSnapshot, controller: ControllerNode) -> FetchSnapshotResponsePartitionSnapshot:
    quorum = controller.log.quorum
    return FetchSnapshotResponsePartitionSnapshot(
        index=asked.partition,
        snapshot_id=FetchSnapshotResponseSnapshotId(
            end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch
        ),
        current_leader=LeaderIdAndEpoch(leader_id=quorum.leader_id, leader_epoch=quorum.epoch),
        size=0,
        position=asked.position,
        unaligned_records=b"",
    )


def _fill(
    answer: FetchSnapshotResponsePartitionSnapshot,
    asked: PartitionSnapshot,
    controller: ControllerNode,
    bytes_max: int,
    ctx: Context,
) -> None:
    quorum = controller.log.quorum
    wanted = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    if asked.current_leader_epoch < quorum.epoch:
        answer.error_code = ErrorCode.FENCED_LEADER_EPOCH
    elif asked.current_leader_epoch > quorum.epoch:
        answer.error_code = ErrorCode.UNKNOWN_LEADER_EPOCH
    elif not quorum.leads:
        answer.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    elif wanted not in controller.log.files.snapshots:
        answer.error_code = ErrorCode.SNAPSHOT_NOT_FOUND
    else:
        disk = ctx.broker.ports.disk
        path = f"{controller.log.directory}/{wanted.file_name}"
        answer.size = disk.size(path)
        if not 0 <= asked.position < answer.size:
            answer.error_code = ErrorCode.POSITION_OUT_OF_RANGE
            return
        file = disk.open(path)
        try:
            answer.unaligned_records = file.read(asked.position, max(1, bytes_max))
        finally:
            file.close()
