"""CreatePartitions: a topic grows; it never shrinks, and what it holds stays where it is."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.metadata.assignments import (
    PARTITIONS_PER_REQUEST_MAX,
    check_assignment,
    check_room,
    new_partition,
    partitions_in,
    place,
)
from millstream.metadata.decision import Decision
from millstream.protocol.errors import (
    BrokerError,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    PolicyViolation,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from millstream.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.metadata.image import MetadataImage, TopicImage
    from millstream.metadata.randomness import Randomness
    from millstream.protocol.messages.metadata.partition import PartitionRecord
    from millstream.settings.effective import Settings


def decide_create_partitions(
    image: MetadataImage,
    request: CreatePartitionsRequest,
    *,
    settings: Settings,
    random: Randomness,
    may_alter: Callable[[str], bool] = lambda _: True,
) -> Decision[CreatePartitionsResponse]:
    """Add partitions to each topic that may grow so; one bad entry does not stop the others."""
    mentions = Counter(entry.name for entry in request.topics)
    in_cluster = partitions_in(image)
    records: list[PartitionRecord] = []
    results: dict[str, CreatePartitionsTopicResult] = {}
    for entry in request.topics:
        try:
            if mentions[entry.name] > 1:
                raise InvalidRequest(f"The request names topic '{entry.name}' more than once.")
            if not may_alter(entry.name):
                raise TopicAuthorizationFailed(f"Altering topic '{entry.name}' is not allowed.")
            added = _grow(image, entry, random, settings, in_cluster=in_cluster, pending=len(records))
        except BrokerError as refusal:
            result = CreatePartitionsTopicResult(
                name=entry.name, error_code=refusal.code, error_message=refusal.message
            )
        else:
            records += added
            result = CreatePartitionsTopicResult(name=entry.name)
        results[entry.name] = result
    response = CreatePartitionsResponse(results=list(results.values()))
    return Decision(() if request.validate_only else tuple(records), response)


def _grow(
    image: MetadataImage,
    entry: CreatePartitionsTopic,
    random: Randomness,
    settings: Settings,
    *,
    in_cluster: int,
    pending: int,
) -> list[PartitionRecord]:
    topic = image.topics.by_name.get(entry.name)
    if topic is None:
        raise UnknownTopicOrPartition(f"There is no topic '{entry.name}'.")
    present = len(topic.partitions)
    added = entry.count - present
    if added == 0:
        raise InvalidPartitions(f"Topic '{entry.name}' has {present} partition(s) already.")
    if added < 0:
        raise InvalidPartitions(
            f"Topic '{entry.name}' has {present} partition(s); {entry.count} would be fewer, and topics cannot shrink."
        )
    if pending + added > PARTITIONS_PER_REQUEST_MAX:
        raise PolicyViolation(f"One request may add {PARTITIONS_PER_REQUEST_MAX} partitions at most.")
    check_room(settings, in_topic=entry.count, in_cluster=in_cluster + pending + added)
    assignments = _assignments(image, topic, entry, added, random)
    by_hand = entry.assignments is not None
    return [
        new_partition(image, topic.id, present + position, replicas, by_hand=by_hand)
        for position, replicas in enumerate(assignments)
    ]


def _assignments(
    image: MetadataImage, topic: TopicImage, entry: CreatePartitionsTopic, added: int, random: Randomness
) -> list[tuple[int, ...]]:
    # As many replicas as the first partition has: the rest of the topic has as many too, unless it is on the move.
    replication_factor = len(topic.partitions[0].replicas)
    if entry.assignments is None:
        return place(image, added, replication_factor, random)
    if len(entry.assignments) != added:
        raise InvalidReplicaAssignment(
            f"{added} partition(s) are to be added to topic '{entry.name}',"
            f" and {len(entry.assignments)} assignment(s) are given."
        )
    for assignment in entry.assignments:
        check_assignment(image, assignment.broker_ids, replication_factor)
    return [tuple(assignment.broker_ids) for assignment in entry.assignments]
