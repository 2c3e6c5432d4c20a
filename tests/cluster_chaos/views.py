"""What the nodes say of the cluster. Each is asked on a connection of its own: no client's cache stands in between."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from millstream.protocol.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from millstream.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from millstream.protocol.messages.metadata_api import MetadataRequest
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from millstream.records.building import encode_batch
from tests.support.raw import RawClient
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.cluster_chaos.processes import ChaosCluster, ChaosNode

Place = tuple[str, int]
ANSWER_S = 4.0
CHANGE_S = 60.0


class Standing(NamedTuple):
    """A partition as one node sees it."""

    leader: int
    epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Quorum(NamedTuple):
    """The metadata quorum as its leader sees it."""

    leader: int
    epoch: int
    voters: tuple[int, ...]


def ask(node: ChaosNode, request: Any, version: int, *, within_s: float = ANSWER_S) -> Any | None:
    """The node's answer; None if there is none."""
    host, _, port = node.where.told.rpartition(":")
    try:
        with RawClient(host, int(port), timeout_s=within_s) as client:
            return client.call(request, version)
    except OSError:
        return None


def write_to(node: ChaosNode, place: Place) -> ErrorCode | None:
    """What the node says to a record that all replicas shall have; None if it says nothing in time."""
    batch = encode_batch([(None, b"a record that nobody expects", (), 0)])
    request = ProduceRequest(
        acks=-1,
        timeout_ms=2_000,
        topic_data=[
            TopicProduceData(name=place[0], partition_data=[PartitionProduceData(index=place[1], records=batch)])
        ],
    )
    answer = ask(node, request, 9, within_s=20)
    return None if answer is None else ErrorCode(answer.responses[0].partition_responses[0].error_code)


def standings(cluster: ChaosCluster, among: Iterable[int] | None = None) -> dict[Place, list[Standing]]:
    """Every partition as each of the nodes sees it, the newest leadership only."""
    found: dict[Place, list[Standing]] = defaultdict(list)
    for node in cluster.askable if among is None else [cluster.nodes[number] for number in among]:
        answer = ask(node, MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)
        for topic in answer.topics if answer is not None else ():
            for part in topic.partitions:
                seen = Standing(
                    part.leader_id, part.leader_epoch, tuple(part.replica_nodes), tuple(sorted(part.isr_nodes))
                )
                found[topic.name, part.partition_index].append(seen)
    return {
        place: [each for each in seen if each.epoch == max(other.epoch for other in seen)]
        for place, seen in found.items()
    }


def newest(cluster: ChaosCluster, place: Place, among: Iterable[int] | None = None) -> Standing | None:
    """The partition by the newest account."""
    seen = standings(cluster, among).get(place)
    return seen[0] if seen else None


def is_whole(cluster: ChaosCluster, brokers: Iterable[int]) -> bool:
    """Whether every node that runs sees every partition led and with all of its replicas in sync."""
    wanted = set(brokers)
    answers = [ask(node, MetadataRequest(topics=None, allow_auto_topic_creation=False), 12) for node in cluster.askable]
    return len(answers) == len(wanted) and all(
        answer is not None
        and {broker.node_id for broker in answer.brokers} == wanted
        and all(
            part.leader_id >= 0 and sorted(part.isr_nodes) == sorted(part.replica_nodes)
            for topic in answer.topics
            for part in topic.partitions
        )
        for answer in answers
    )


def quorum(cluster: ChaosCluster, among: Iterable[int] | None = None) -> Quorum | None:
    """As told through any of the nodes: the newest epoch wins."""
    request = DescribeQuorumRequest(
        topics=[TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)])]
    )
    best: Quorum | None = None
    for node in cluster.askable if among is None else [cluster.nodes[number] for number in among]:
        answer = ask(node, request, 2)
        if answer is None or answer.error_code or not answer.topics:
            continue
        state = answer.topics[0].partitions[0]
        if state.error_code == ErrorCode.NONE and (best is None or state.leader_epoch > best.epoch):
            voters = tuple(sorted(replica.replica_id for replica in state.current_voters))
            best = Quorum(state.leader_id, state.leader_epoch, voters)
    return best


def until_answered(cluster: ChaosCluster, request: Any, version: int, good: Callable[[Any], bool], what: str) -> Any:
    """Ask one node after the other until an answer is good: controllers come and go while we ask."""
    said = "nothing"

    def attempt() -> Any | None:
        nonlocal said
        for node in cluster.askable:
            answer = ask(node, request, version, within_s=30)
            said = str(answer)
            if answer is not None and good(answer):
                return answer
        return None

    try:
        return wait_until(attempt, what, within_s=CHANGE_S, every_s=0.3)
    except TimeoutError as error:
        raise TimeoutError(f"{error}; the last answer was {said}") from None


def add_voter(cluster: ChaosCluster, number: int) -> None:
    host, _, port = cluster.links.controller_listener(number).told.rpartition(":")
    request = AddRaftVoterRequest(
        cluster_id=cluster.cluster_id,
        timeout_ms=20_000,
        voter_id=number,
        voter_directory_id=cluster.directory_ids[number],
        listeners=[Listener(name="CONTROLLER", host=host, port=int(port))],
    )
    done = (ErrorCode.NONE, ErrorCode.DUPLICATE_VOTER)
    until_answered(cluster, request, 1, lambda answer: answer.error_code in done, f"{number} to become a voter")


def remove_voter(cluster: ChaosCluster, number: int) -> None:
    request = RemoveRaftVoterRequest(
        cluster_id=cluster.cluster_id, voter_id=number, voter_directory_id=cluster.directory_ids[number]
    )
    done = (ErrorCode.NONE, ErrorCode.VOTER_NOT_FOUND)
    until_answered(cluster, request, 0, lambda answer: answer.error_code in done, f"{number} to be no voter")


def reassign(cluster: ChaosCluster, targets: dict[Place, list[int]]) -> None:
    """Start the moves; they end in their own time (`moving`)."""
    topics: dict[str, list[ReassignablePartition]] = defaultdict(list)
    for (topic, index), replicas in targets.items():
        topics[topic].append(ReassignablePartition(partition_index=index, replicas=replicas))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=20_000, topics=[ReassignableTopic(name=name, partitions=parts) for name, parts in topics.items()]
    )

    def good(answer: Any) -> bool:
        return not answer.error_code and not any(p.error_code for topic in answer.responses for p in topic.partitions)

    until_answered(cluster, request, 0, good, f"a reassignment of {sorted(targets)}")


def moving(cluster: ChaosCluster) -> list[Place]:
    """Partitions on the move."""
    answer = until_answered(
        cluster,
        ListPartitionReassignmentsRequest(timeout_ms=20_000, topics=None),
        0,
        lambda answer: not answer.error_code,
        "the moves under way",
    )
    return [(topic.name, part.partition_index) for topic in answer.topics for part in topic.partitions]
