"""Kafka's messages between controllers, and the quorum's own events: one in terms of the other.

All of them name topic and partition, and there is only one: `__cluster_metadata-0`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.messages import begin_quorum_epoch, end_quorum_epoch, vote
from millstream.protocol.messages import fetch as fetching
from millstream.protocol.messages.begin_quorum_epoch import BeginQuorumEpochRequest
from millstream.protocol.messages.end_quorum_epoch import EndQuorumEpochRequest
from millstream.protocol.messages.fetch import FetchRequest, FetchResponse
from millstream.protocol.messages.vote import VoteRequest
from millstream.protocol.uuid import METADATA_TOPIC_ID
from millstream.quorum.election_state import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.protocol.uuid import Uuid
    from millstream.quorum.events import Announce, RequestVotes, Retire
    from millstream.quorum.positions import LogPosition
    from millstream.quorum.roles import ReplicaKey
    from millstream.quorum.voters import VoterEndpoint

METADATA_PARTITION = 0
FETCH_WAIT_MS_MAX = 500


class Seen(NamedTuple):
    """What an answer says besides its own business: the epoch, its leader, and where nodes are."""

    error_code: int
    leader_id: int
    leader_epoch: int
    addresses: dict[int, tuple[str, int]]


def vote_request(effect: RequestVotes, voter: ReplicaKey, own: ReplicaKey, cluster_id: str) -> VoteRequest:
    return VoteRequest(
        cluster_id=cluster_id,
        voter_id=voter.id,
        topics=[
            vote.TopicData(
                topic_name=METADATA_TOPIC,
                partitions=[
                    vote.PartitionData(
                        partition_index=METADATA_PARTITION,
                        replica_epoch=effect.epoch,
                        replica_id=own.id,
                        replica_directory_id=own.directory_id,
                        voter_directory_id=voter.directory_id,
                        last_offset_epoch=effect.end.epoch,
                        last_offset=effect.end.offset,
                        pre_vote=effect.pre_vote,
                    )
                ],
            )
        ],
    )


def begin_request(
    effect: Announce, voter: ReplicaKey, own_id: int, cluster_id: str, endpoints: Iterable[VoterEndpoint]
) -> BeginQuorumEpochRequest:
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.id,
        topics=[
            begin_quorum_epoch.TopicData(
                topic_name=METADATA_TOPIC,
                partitions=[
                    begin_quorum_epoch.PartitionData(
                        partition_index=METADATA_PARTITION,
                        voter_directory_id=voter.directory_id,
                        leader_id=own_id,
                        leader_epoch=effect.epoch,
                    )
                ],
            )
        ],
        leader_endpoints=[
            begin_quorum_epoch.LeaderEndpoint(name=each.name, host=each.host, port=each.port) for each in endpoints
        ],
    )


def end_request(
    effect: Retire, own_id: int, cluster_id: str, endpoints: Iterable[VoterEndpoint]
) -> EndQuorumEpochRequest:
    return EndQuorumEpochRequest(
        cluster_id=cluster_id,
        topics=[
            end_quorum_epoch.TopicData(
                topic_name=METADATA_TOPIC,
                partitions=[
                    end_quorum_epoch.PartitionData(
                        partition_index=METADATA_PARTITION,
                        leader_id=own_id,
                        leader_epoch=effect.epoch,
                        preferred_successors=[key.id for key in effect.voters],
                        preferred_candidates=[
                            end_quorum_epoch.ReplicaInfo(candidate_id=key.id, candidate_directory_id=key.directory_id)
                            for key in effect.voters
                        ],
                    )
                ],
            )
        ],
        leader_endpoints=[
            end_quorum_epoch.LeaderEndpoint(name=each.name, host=each.host, port=each.port) for each in endpoints
        ],
    )


def fetch_request(
    *,
    own_id: int,
    own_directory_id: Uuid,
    cluster_id: str,
    epoch: int,
    end: LogPosition,
    high_watermark: int,
    bytes_max: int,
    wait_ms: int,
) -> FetchRequest:
    return FetchRequest(
        cluster_id=cluster_id,
        replica_id=own_id,
        replica_state=fetching.ReplicaState(replica_id=own_id),
        max_wait_ms=wait_ms,
        min_bytes=0,
        max_bytes=bytes_max,
        topics=[
            fetching.FetchTopic(
                topic=METADATA_TOPIC,
                topic_id=METADATA_TOPIC_ID,
                partitions=[
                    fetching.FetchPartition(
                        partition=METADATA_PARTITION,
                        current_leader_epoch=epoch,
                        fetch_offset=end.offset,
                        last_fetched_epoch=end.epoch,
                        partition_max_bytes=bytes_max,
                        replica_directory_id=own_directory_id,
                        high_watermark=high_watermark,
                    )
                ],
            )
        ],
    )


def seen_in(response: Any) -> Seen:
    """Of an answer to Vote, BeginQuorumEpoch or EndQuorumEpoch."""
    addresses = {each.node_id: (each.host, each.port) for each in response.node_endpoints}
    if response.error_code or not response.topics or not response.topics[0].partitions:
        return Seen(response.error_code, NOBODY, -1, addresses)
    partition = response.topics[0].partitions[0]
    return Seen(partition.error_code, partition.leader_id, partition.leader_epoch, addresses)


def seen_in_fetch(response: FetchResponse) -> tuple[Seen, fetching.PartitionData | None]:
    addresses = {each.node_id: (each.host, each.port) for each in response.node_endpoints}
    if response.error_code or not response.responses or not response.responses[0].partitions:
        return Seen(response.error_code, NOBODY, -1, addresses), None
    partition = response.responses[0].partitions[0]
    leader = partition.current_leader
    return Seen(partition.error_code, leader.leader_id, leader.leader_epoch, addresses), partition
