"""DescribeQuorum: the state of the metadata quorum as its leader knows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.broker.dispatch import Context, handles
from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from millstream.quorum.roles import NEVER_MS, Leader, Progress, ReplicaKey
from millstream.security.operations import needs_of

if TYPE_CHECKING:
    from millstream.broker.controller_node import ControllerNode
    from millstream.runtime.ports import Ports

(_DESCRIBE,) = needs_of(DescribeQuorumRequest)
NODES_SINCE = 2


@handles(DescribeQuorumRequest, versions="0-2", forwards=True)
def describe_quorum(request: DescribeQuorumRequest, ctx: Context) -> DescribeQuorumResponse:
    if not _DESCRIBE.granted(ctx.allows):
        return DescribeQuorumResponse(
            error_code=_DESCRIBE.refusal, error_message="Describing the cluster is not allowed.", topics=[]
        )
    controller = ctx.broker.controller
    topics = [
        DescribeQuorumResponseTopicData(
            topic_name=topic.topic_name,
            partitions=[
                _metadata_partition(controller, ctx.broker.ports)
                if (topic.topic_name, partition.partition_index) == (METADATA_TOPIC, 0)
                else _unknown(partition.partition_index)
                for partition in topic.partitions
            ],
        )
        for topic in request.topics
    ]
    asked_for_quorum = any(topic.topic_name == METADATA_TOPIC for topic in request.topics)
    nodes = _nodes(controller) if ctx.version >= NODES_SINCE and asked_for_quorum else []
    return DescribeQuorumResponse(error_message="", topics=topics, nodes=nodes)


def _metadata_partition(controller: ControllerNode, ports: Ports) -> DescribeQuorumResponsePartitionData:
    quorum = controller.log.quorum
    role = quorum.role
    if not isinstance(role, Leader):
        # Only the leader knows how far the others are; who asks goes on to it.
        return DescribeQuorumResponsePartitionData(
            partition_index=0,
            error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
            error_message="This node does not lead the quorum.",
            leader_id=quorum.leader_id,
            leader_epoch=quorum.epoch,
            high_watermark=-1,
            current_voters=[],
            observers=[],
        )
    clock = _Clocks(ports.clock.wall_ms(), ports.clock.monotonic_ms())
    voters = []
    for voter in quorum.voters:
        if voter.id == quorum.node_id:
            # A leader is always caught up with itself.
            own = Progress(controller.log.end_offset, clock.monotonic_ms, clock.monotonic_ms)
            voters.append(_replica(ReplicaKey(voter.id, voter.directory_id), own, clock))
        else:
            progress = role.voters.get(voter.id, Progress())
            voters.append(_replica(ReplicaKey(voter.id, voter.directory_id), progress, clock))
    return DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message="",
        leader_id=quorum.leader_id,
        leader_epoch=quorum.epoch,
        high_watermark=controller.log.high_watermark,
        current_voters=voters,
        observers=[_replica(key, progress, clock) for key, progress in role.observers.items()],
    )


class _Clocks(NamedTuple):
    """Progress is kept by the monotonic clock and told by the one on the wall."""

    wall_ms: int
    monotonic_ms: int

    def told(self, at_ms: int) -> int:
        return NEVER_MS if at_ms == NEVER_MS else self.wall_ms - (self.monotonic_ms - at_ms)


def _replica(key: ReplicaKey, progress: Progress, clock: _Clocks) -> ReplicaState:
    return ReplicaState(
        replica_id=key.id,
        replica_directory_id=key.directory_id,
        log_end_offset=progress.end_offset,
        last_fetch_timestamp=clock.told(progress.fetched_ms),
        last_caught_up_timestamp=clock.told(progress.caught_up_ms),
    )


def _unknown(partition: int) -> DescribeQuorumResponsePartitionData:
    return DescribeQuorumResponsePartitionData(
        partition_index=partition,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="Only the metadata log has a quorum.",
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )


def _nodes(controller: ControllerNode) -> list[Node]:
    """The voters' controller listeners: as their record says in a dynamic quorum, else as they registered."""
    nodes = []
    for voter in controller.log.quorum.voters:
        registered = controller.image.controllers.get(voter.id)
        endpoints = voter.endpoints or (() if registered is None else registered.endpoints)
        listeners = [Listener(name=each.name, host=each.host, port=each.port) for each in endpoints]
        nodes.append(Node(node_id=voter.id, listeners=listeners))
    return nodes
