"""ElectLeaders: give partitions their preferred leader back, or any leader at all at the price of losing records.

A request for all partitions answers with those alone for which something happened or failed; a request that names
partitions hears of each, also that nothing was needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.metadata.decision import Decision
from millstream.metadata.image import NO_LEADER
from millstream.metadata.partition_change import Election, Wanted, change_partition, has_preferred_leader
from millstream.protocol.errors import BrokerError, ErrorCode, UnknownTopicOrPartition
from millstream.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)

if TYPE_CHECKING:
    from millstream.metadata.image import MetadataImage
    from millstream.protocol.messages.metadata.partition_change import PartitionChangeRecord

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}


class ElectionNotNeeded(BrokerError, code=ErrorCode.ELECTION_NOT_NEEDED):
    """The partition has the leader that the election would give it."""


class PreferredLeaderNotAvailable(BrokerError, code=ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE):
    """The preferred leader is not active or not in sync."""


class EligibleLeadersNotAvailable(BrokerError, code=ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE):
    """No replica of the partition is active."""


def decide_elect_leaders(image: MetadataImage, request: ElectLeadersRequest) -> Decision[ElectLeadersResponse]:
    """Hold the elections that are needed."""
    everywhere = request.topic_partitions is None
    asked = request.topic_partitions
    if asked is None:
        asked = [
            TopicPartitions(topic=topic.name, partitions=list(topic.partitions))
            for topic in image.topics.by_name.values()
        ]
    election = _ELECTIONS.get(request.election_type)
    if election is None:
        return Decision((), _unknown_election(request, asked))
    records: list[PartitionChangeRecord] = []
    results: list[ReplicaElectionResult] = []
    for entry in asked:
        answers: list[PartitionResult] = []
        for partition in entry.partitions:
            try:
                records.append(_elect(image, entry.topic, partition, election))
            except BrokerError as refusal:
                if not (everywhere and refusal.code is ErrorCode.ELECTION_NOT_NEEDED):
                    answers.append(_result(partition, refusal.code, refusal.message))
            else:
                answers.append(_result(partition, ErrorCode.NONE, None))
        results.append(ReplicaElectionResult(topic=entry.topic, partition_result=answers))
    return Decision(tuple(records), ElectLeadersResponse(replica_election_results=results))


def _elect(image: MetadataImage, name: str, partition_id: int, election: Election) -> PartitionChangeRecord:
    topic = image.topics.by_name.get(name)
    partition = None if topic is None else topic.partitions.get(partition_id)
    if topic is None or partition is None:
        raise UnknownTopicOrPartition(f"There is no partition {name}-{partition_id}.")
    if election is Election.PREFERRED:
        if has_preferred_leader(partition):
            raise ElectionNotNeeded
        record = change_partition(image, topic, partition_id, Wanted(election=election))
        if record is None:
            raise PreferredLeaderNotAvailable(
                f"Broker {partition.replicas[0]}, the preferred leader of {name}-{partition_id},"
                " is not active or not in sync."
            )
        return record
    if partition.leader != NO_LEADER:
        raise ElectionNotNeeded
    record = change_partition(image, topic, partition_id, Wanted(election=election))
    if record is None:
        raise EligibleLeadersNotAvailable
    return record


def _result(partition: int, code: ErrorCode, message: str | None) -> PartitionResult:
    return PartitionResult(partition_id=partition, error_code=code, error_message=message)


def _unknown_election(request: ElectLeadersRequest, asked: list[TopicPartitions]) -> ElectLeadersResponse:
    reason = f"{request.election_type} is no kind of election: 0 is a preferred, 1 an unclean one."
    return ElectLeadersResponse(
        error_code=ErrorCode.INVALID_REQUEST,
        replica_election_results=[
            ReplicaElectionResult(
                topic=entry.topic,
                partition_result=[_result(each, ErrorCode.INVALID_REQUEST, reason) for each in entry.partitions],
            )
            for entry in asked
        ],
    )
