"""The requests of other controllers and of brokers to this member of the quorum, and its answers.

Every answer also says which epoch this node knows, who leads it and where that is: that is how those who have fallen
behind, or are new, find their way. A fetch of records that are not there yet waits for them; it is answered at once
when more is committed than the follower knows of (KIP-1166), or when this node no longer leads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from millstream.broker.dispatch import Context, Deferred
from millstream.broker.quorum_messages import FETCH_WAIT_MS_MAX
from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages import fetch as fetching
from millstream.protocol.messages.fetch import FetchRequest, FetchResponse
from millstream.protocol.uuid import METADATA_TOPIC_ID, ZERO_UUID
from millstream.quorum.events import AnswerFetch, FetchRequested
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import ReplicaKey
from millstream.security.operations import Operation, ResourceType

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from millstream.broker.controller_node import ControllerNode

TOPIC_IDS_SINCE = 13
REPLICA_STATE_SINCE = 15
UNKNOWN = -1


def is_other_cluster(controller: ControllerNode, cluster_id: str | None) -> bool:
    """Whether a request was meant for another cluster; one that names none is for any."""
    return cluster_id is not None and cluster_id != controller.config.cluster_id


def is_other_voter(controller: ControllerNode, voter: ReplicaKey) -> bool:
    """Whether a request was meant for another voter than this one."""
    quorum = controller.log.quorum
    if voter.id not in (UNKNOWN, quorum.node_id):
        return True
    return voter.directory_id not in (ZERO_UUID, quorum.directory_id)


def leader_address(controller: ControllerNode) -> list[tuple[int, str, int]]:
    """(node id, host, port) of the leader, as answers tell it; empty if it is not known."""
    leader_id = controller.log.quorum.leader_id
    address = controller.address_of(leader_id) if leader_id != UNKNOWN else None
    return [] if address is None else [(leader_id, *address)]


def fetch_metadata(request: FetchRequest, ctx: Context) -> FetchResponse | Deferred:
    """A fetch on the controller's listener: only of the metadata log, and from its leader only."""
    controller = ctx.broker.controller
    if not ctx.allows(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster"):
        return FetchResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, responses=[])
    if is_other_cluster(controller, request.cluster_id):
        return FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID, responses=[])
    wanted = _wanted(request, ctx.version)
    if wanted is None:
        return FetchResponse(error_code=ErrorCode.INVALID_REQUEST, responses=[])
    poll = _MetadataFetch(request, wanted, ctx)
    response = poll.try_to_answer()
    return response if response is not None else poll.wait()


def _wanted(request: FetchRequest, version: int) -> fetching.FetchPartition | None:
    """The one partition that may be asked for, if it is what was asked for."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic = request.topics[0]
    known = topic.topic_id == METADATA_TOPIC_ID if version >= TOPIC_IDS_SINCE else topic.topic == METADATA_TOPIC
    return topic.partitions[0] if known and topic.partitions[0].partition == 0 else None


class _MetadataFetch:
    """One fetch of the metadata log, which may have to wait."""

    def __init__(self, request: FetchRequest, wanted: fetching.FetchPartition, ctx: Context) -> None:
        self._controller = ctx.broker.controller
        self._wait_ms = min(request.max_wait_ms, FETCH_WAIT_MS_MAX)
        self._bytes_max = max(1, request.max_bytes)
        self._wanted = wanted
        self._loop = ctx.broker.loop
        replica_id = request.replica_state.replica_id if ctx.version >= REPLICA_STATE_SINCE else request.replica_id
        self._event = FetchRequested(
            ReplicaKey(replica_id, wanted.replica_directory_id),
            wanted.current_leader_epoch,
            LogPosition(wanted.fetch_offset, wanted.last_fetched_epoch),
        )
        self._timer: TimerHandle | None = None
        self._deferred: Deferred | None = None

    def try_to_answer(self) -> FetchResponse | None:
        """The answer, if there is something to say; None if the fetch should wait."""
        answer = self._controller.log.step(self._event)
        assert isinstance(answer, AnswerFetch)
        if self._event.is_new:
            self._event = replace(self._event, is_new=False)
        log = self._controller.log
        is_plain = answer == AnswerFetch()
        if is_plain and self._wait_ms > 0:
            # Before 18 a follower does not say what it knows to be committed: its next fetch will have to do.
            news = log.end_offset > self._event.end.offset or log.high_watermark > self._wanted.high_watermark
            if not news:
                return None
        return self._response(answer, self._records() if is_plain else None)

    def _records(self) -> bytes | None:
        log = self._controller.log.log
        return log.read(self._event.end.offset, self._bytes_max, log.end_offset, at_least_one_batch=True)

    def _response(self, answer: AnswerFetch, records: bytes | None) -> FetchResponse:
        log = self._controller.log
        quorum = log.quorum
        partition = fetching.PartitionData(
            partition_index=0,
            error_code=answer.error,
            high_watermark=log.high_watermark if quorum.leads else -1,
            log_start_offset=log.log.start_offset if quorum.leads else -1,
            current_leader=fetching.LeaderIdAndEpoch(leader_id=quorum.leader_id, leader_epoch=quorum.epoch),
            aborted_transactions=[],
            records=records or b"",
        )
        if answer.diverging is not None:
            at = answer.diverging
            partition.diverging_epoch = fetching.EpochEndOffset(epoch=at.epoch, end_offset=at.offset)
        if answer.snapshot is not None:
            snapshot = answer.snapshot
            partition.snapshot_id = fetching.SnapshotId(end_offset=snapshot.offset, epoch=snapshot.epoch)
        return FetchResponse(
            responses=[
                fetching.FetchableTopicResponse(
                    topic=METADATA_TOPIC, topic_id=METADATA_TOPIC_ID, partitions=[partition]
                )
            ],
            node_endpoints=[
                fetching.NodeEndpoint(node_id=node_id, host=host, port=port)
                for node_id, host, port in leader_address(self._controller)
            ],
        )

    def wait(self) -> Deferred:
        self._deferred = Deferred(on_abandon=self._stop)
        self._timer = self._loop.call_later(self._wait_ms / 1000, self._time_is_up)
        self._controller.subscribe_log(self._log_changed)
        return self._deferred

    def _log_changed(self) -> None:
        assert self._deferred is not None
        try:
            response = self.try_to_answer()
        except BrokerError as error:
            # The metadata log has failed, and the node is about to stop.
            response = FetchResponse(error_code=error.code, responses=[])
        if response is not None:
            self._stop()
            self._deferred.finish(response)

    def _time_is_up(self) -> None:
        self._wait_ms = 0
        self._log_changed()

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._controller.unsubscribe_log(self._log_changed)
