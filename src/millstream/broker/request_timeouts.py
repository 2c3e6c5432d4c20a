"""The `timeout_ms` of requests to the controller: after it the client gets REQUEST_TIMED_OUT.

The rules are Apache Kafka 4.3.1's, as it answers:

- CreateTopics, DeleteTopics, CreatePartitions, ElectLeaders and AlterPartitionReassignments with a timeout of 0 or less
  have timed out before anything is looked at: every entry of the request gets the error, also one that is wrong, and
  nothing happens. A request in which nothing is left for the controller (it is empty, names everything twice, or only
  topics that the client may not change) has nothing that could time out.
- ListPartitionReassignments, UpdateFeatures and AddRaftVoter take 0 or less as no timeout.

Apache Kafka counts the time until the controller decides and waits without a limit for the commit. Here the timeout
also covers the commit, and a broker's search for the active controller: without a majority of the quorum both may take
for ever. A change that timed out while its commit was awaited may still be committed, as with any timeout.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from millstream.metadata.names import METADATA_TOPIC
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from millstream.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from millstream.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
)
from millstream.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from millstream.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from millstream.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from millstream.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from millstream.protocol.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from millstream.protocol.uuid import Uuid

Name = TypeVar("Name")
Response = TypeVar("Response")

_CODE = ErrorCode.REQUEST_TIMED_OUT
_MESSAGE = "The controller did not commit the request within its timeout_ms."


async def within_timeout(
    request: Any, respond: Callable[[], Awaitable[Response]], *, may_change: Callable[[str], bool] = lambda _: True
) -> Response:
    """The response, or the one that says REQUEST_TIMED_OUT once the request's own timeout has passed.

    `may_change` says of a topic's name whether the client is allowed to do what it asks for.
    """
    timeout_ms = timeout_of(request)
    if timeout_ms is None or (timeout_ms <= 0 and not _needs_the_controller(request, may_change)):
        return await respond()
    if timeout_ms > 0:
        try:
            async with asyncio.timeout(timeout_ms / 1000) as limit:
                return await respond()
        except TimeoutError:
            if not limit.expired():
                raise
    return cast("Response", timed_out(request))


def timeout_of(request: Any) -> int | None:
    """How long the request may take; None where it has no limit of its own."""
    timeout_ms: int | None = getattr(request, "timeout_ms", None)
    return None if timeout_ms is None or (timeout_ms <= 0 and type(request) in _ZERO_IS_NO_TIMEOUT) else timeout_ms


_ZERO_IS_NO_TIMEOUT = (ListPartitionReassignmentsRequest, UpdateFeaturesRequest, AddRaftVoterRequest)


def _needs_the_controller(request: Any, may_change: Callable[[str], bool]) -> bool:
    """Whether anything is left of the request after what every broker can refuse."""
    match request:
        case CreateTopicsRequest():
            names = _named_once(topic.name for topic in request.topics)
            return any(name != METADATA_TOPIC and may_change(name) for name in names)
        case DeleteTopicsRequest():
            # By name or by id, and not by both. Whose id it is, only the controller can say.
            return any(
                topic_id != ZERO_UUID if name is None else topic_id == ZERO_UUID and may_change(name)
                for name, topic_id in _named_once(_to_delete(request))
            )
        case CreatePartitionsRequest():
            return any(map(may_change, _named_once(topic.name for topic in request.topics)))
        case ElectLeadersRequest():
            return request.topic_partitions is None or bool(request.topic_partitions)
        case AlterPartitionReassignmentsRequest():
            return bool(request.topics)
    raise AssertionError(f"{type(request).__name__} is not known to time out at once")


def _to_delete(request: DeleteTopicsRequest) -> list[tuple[str | None, Uuid]]:
    """Name and id of each topic; up to version 5 a list of names has them."""
    return [
        *((topic.name, topic.topic_id) for topic in request.topics),
        *((name, ZERO_UUID) for name in request.topic_names),
    ]


def _named_once(names: Iterable[Name]) -> list[Name]:
    return [name for name, mentions in Counter(names).items() if mentions == 1]


def timed_out(request: Any) -> Any:
    """REQUEST_TIMED_OUT for the request as a whole and for each of its entries."""
    match request:
        case CreateTopicsRequest():
            return CreateTopicsResponse(
                topics=[
                    CreatableTopicResult(name=topic.name, error_code=_CODE, error_message=_MESSAGE)
                    for topic in request.topics
                ]
            )
        case DeleteTopicsRequest():
            return DeleteTopicsResponse(
                responses=[
                    DeletableTopicResult(name=name, topic_id=topic_id, error_code=_CODE, error_message=_MESSAGE)
                    for name, topic_id in _to_delete(request)
                ]
            )
        case CreatePartitionsRequest():
            return CreatePartitionsResponse(
                results=[
                    CreatePartitionsTopicResult(name=topic.name, error_code=_CODE, error_message=_MESSAGE)
                    for topic in request.topics
                ]
            )
        case ElectLeadersRequest():
            return ElectLeadersResponse(
                error_code=_CODE,
                replica_election_results=[
                    ReplicaElectionResult(
                        topic=topic.topic,
                        partition_result=[
                            PartitionResult(partition_id=number, error_code=_CODE, error_message=_MESSAGE)
                            for number in topic.partitions
                        ],
                    )
                    for topic in request.topic_partitions or []
                ],
            )
        case AlterPartitionReassignmentsRequest():
            return AlterPartitionReassignmentsResponse(
                error_code=_CODE,
                error_message=_MESSAGE,
                responses=[
                    ReassignableTopicResponse(
                        name=topic.name,
                        partitions=[
                            ReassignablePartitionResponse(
                                partition_index=partition.partition_index, error_code=_CODE, error_message=_MESSAGE
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ],
            )
        case ListPartitionReassignmentsRequest():
            return ListPartitionReassignmentsResponse(error_code=_CODE, error_message=_MESSAGE, topics=[])
        case UpdateFeaturesRequest():
            return UpdateFeaturesResponse(error_code=_CODE, error_message=_MESSAGE, results=[])
        case AddRaftVoterRequest():
            return AddRaftVoterResponse(error_code=_CODE, error_message=_MESSAGE)
    raise AssertionError(f"{type(request).__name__} has a timeout, and no response that says that it passed")
