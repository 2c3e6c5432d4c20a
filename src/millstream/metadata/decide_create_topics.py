"""CreateTopics: names, sizes, assignments and configs are checked as Kafka checks them, topic by topic.

One bad topic does not stop its neighbours. A topic asked for twice in one request is not created at all: nobody can
say which of the two was meant. Stricter than Kafka in one point: two names that collide in metrics are refused also
when they come in the same request.

Sizes of -1 stand for `num.partitions` and `default.replication.factor`, or, with an assignment by hand, for "see
there". The answer (version 5 and later) tells the sizes and the effective configs of what was made.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from millstream.metadata.assignments import (
    PARTITIONS_PER_REQUEST_MAX,
    check_assignment,
    check_room,
    new_partition,
    partitions_in,
    place,
)
from millstream.metadata.config_rules import check_topic_configs
from millstream.metadata.decision import Decision
from millstream.metadata.image import TOPIC_CONFIG
from millstream.metadata.names import METADATA_TOPIC, check_topic_name, metric_name
from millstream.protocol.errors import (
    BrokerError,
    ErrorCode,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidReplicationFactor,
    InvalidRequest,
    InvalidTopic,
    PolicyViolation,
    TopicAuthorizationFailed,
    TopicExists,
)
from millstream.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from millstream.protocol.messages.metadata.config import ConfigRecord
from millstream.protocol.messages.metadata.topic import TopicRecord
from millstream.settings import DEFAULT_REPLICATION_FACTOR, MILLSTREAM_TOPICS_MAX, NUM_PARTITIONS
from millstream.settings.catalog import TOPIC
from millstream.settings.declare import Scope

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.metadata.image import MetadataImage
    from millstream.metadata.randomness import Randomness
    from millstream.metadata.record_types import MetadataRecord
    from millstream.protocol.messages.metadata.partition import PartitionRecord
    from millstream.protocol.uuid import Uuid
    from millstream.settings.effective import Settings

USE_DEFAULT = -1


class _New(NamedTuple):
    """A topic that passed all checks."""

    topic: TopicRecord
    configs: dict[str, str]
    partitions: list[PartitionRecord]


@dataclass(slots=True)
class _Room:
    """What the cluster has, with what this request adds; `names` by what they look like in metrics."""

    topics: int
    partitions: int
    names: dict[str, str] = field(default_factory=dict)


def decide_create_topics(
    image: MetadataImage,
    request: CreateTopicsRequest,
    *,
    settings: Settings,
    random: Randomness,
    may_create: Callable[[str], bool] = lambda _: True,
    may_see_configs: Callable[[str], bool] = lambda _: True,
) -> Decision[CreateTopicsResponse]:
    """Make the topics that can be made."""
    if _partitions_asked_for(request, settings) > PARTITIONS_PER_REQUEST_MAX:
        return Decision((), _refuse_all(request))
    mentions = Counter(entry.name for entry in request.topics)
    room = _Room(
        topics=len(image.topics.by_name),
        partitions=partitions_in(image),
        names={metric_name(name): name for name in image.topics.by_name if "." in name or "_" in name},
    )
    records: list[MetadataRecord] = []
    results: dict[str, CreatableTopicResult] = {}
    for entry in request.topics:
        try:
            if mentions[entry.name] > 1:
                raise InvalidRequest(f"The request names topic '{entry.name}' more than once.")
            if not may_create(entry.name):
                raise TopicAuthorizationFailed(f"Creating topic '{entry.name}' is not allowed.")
            new = _create(image, entry, settings, random, room)
        except BrokerError as refusal:
            result = _refusal(entry.name, refusal.code, refusal.message)
        else:
            records += _records(new)
            result = _created(new, settings, may_see_configs=may_see_configs(entry.name))
        results[entry.name] = result
    response = CreateTopicsResponse(topics=list(results.values()))
    return Decision(() if request.validate_only else tuple(records), response)


def _partitions_asked_for(request: CreateTopicsRequest, settings: Settings) -> int:
    return sum(
        len(entry.assignments)
        or (settings[NUM_PARTITIONS] if entry.num_partitions == USE_DEFAULT else max(entry.num_partitions, 0))
        for entry in request.topics
    )


def _refuse_all(request: CreateTopicsRequest) -> CreateTopicsResponse:
    reason = f"One request may create {PARTITIONS_PER_REQUEST_MAX} partitions at most."
    names = dict.fromkeys(entry.name for entry in request.topics)
    return CreateTopicsResponse(topics=[_refusal(name, ErrorCode.POLICY_VIOLATION, reason) for name in names])


def _refusal(name: str, code: ErrorCode, message: str) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


def _create(image: MetadataImage, entry: CreatableTopic, settings: Settings, random: Randomness, room: _Room) -> _New:
    _check_name(image, entry.name, room)
    configs = {config.name: config.value for config in entry.configs}
    check_topic_configs(settings, configs)
    topic_id = _new_topic_id(image, random)
    assignments = _assignments(image, entry, settings, random)
    if room.topics + 1 > settings[MILLSTREAM_TOPICS_MAX]:
        raise PolicyViolation(
            f"The cluster may have {settings[MILLSTREAM_TOPICS_MAX]} topics at most ({MILLSTREAM_TOPICS_MAX.name})."
        )
    check_room(settings, in_topic=len(assignments), in_cluster=room.partitions + len(assignments))
    by_hand = bool(entry.assignments)
    partitions = [
        new_partition(image, topic_id, number, replicas, by_hand=by_hand) for number, replicas in enumerate(assignments)
    ]
    room.topics += 1
    room.partitions += len(partitions)
    room.names[metric_name(entry.name)] = entry.name
    return _New(
        TopicRecord(name=entry.name, topic_id=topic_id),
        {name: value for name, value in configs.items() if value is not None},
        partitions,
    )


def _check_name(image: MetadataImage, name: str, room: _Room) -> None:
    if name == METADATA_TOPIC:
        raise InvalidRequest(f"{METADATA_TOPIC} is the cluster's own log and no topic.")
    check_topic_name(name)
    if name in image.topics.by_name:
        raise TopicExists(f"Topic '{name}' already exists.")
    other = room.names.get(metric_name(name))
    if other is not None:
        raise InvalidTopic(
            f"Topic '{name}' collides with topic '{other}': metrics cannot tell '.' and '_' from each other."
        )


def _new_topic_id(image: MetadataImage, random: Randomness) -> Uuid:
    topic_id = random.uuid()
    while topic_id in image.topics.by_id:
        topic_id = random.uuid()
    return topic_id


def _assignments(
    image: MetadataImage, entry: CreatableTopic, settings: Settings, random: Randomness
) -> list[tuple[int, ...]]:
    if entry.assignments:
        return _assignments_by_hand(image, entry)
    partition_count, replication_factor = entry.num_partitions, entry.replication_factor
    if replication_factor == USE_DEFAULT:
        replication_factor = settings[DEFAULT_REPLICATION_FACTOR]
    elif replication_factor <= 0:
        raise InvalidReplicationFactor(
            f"The replication factor must be above 0, or -1 for the default, and not {replication_factor}."
        )
    if partition_count == USE_DEFAULT:
        partition_count = settings[NUM_PARTITIONS]
    elif partition_count <= 0:
        raise InvalidPartitions(
            f"The number of partitions must be above 0, or -1 for the default, and not {partition_count}."
        )
    return place(image, partition_count, replication_factor, random)


def _assignments_by_hand(image: MetadataImage, entry: CreatableTopic) -> list[tuple[int, ...]]:
    if entry.replication_factor != USE_DEFAULT:
        raise InvalidRequest("With an assignment by hand, the replication factor must be -1.")
    if entry.num_partitions != USE_DEFAULT:
        raise InvalidRequest("With an assignment by hand, the number of partitions must be -1.")
    found: dict[int, tuple[int, ...]] = {}
    replication_factor = None
    for assignment in entry.assignments:
        if assignment.partition_index in found:
            raise InvalidReplicaAssignment(f"Partition {assignment.partition_index} is assigned twice.")
        check_assignment(image, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
        found[assignment.partition_index] = tuple(assignment.broker_ids)
    if sorted(found) != list(range(len(found))):
        raise InvalidReplicaAssignment("The assigned partitions must be numbered from 0 without a gap.")
    return [found[number] for number in range(len(found))]


def _records(new: _New) -> list[MetadataRecord]:
    configs = (
        ConfigRecord(resource_type=TOPIC_CONFIG, resource_name=new.topic.name, name=name, value=value)
        for name, value in new.configs.items()
    )
    return [new.topic, *configs, *new.partitions]


def _created(new: _New, settings: Settings, *, may_see_configs: bool) -> CreatableTopicResult:
    result = CreatableTopicResult(name=new.topic.name, topic_id=new.topic.topic_id, error_message=None)
    if not may_see_configs:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return result
    effective = settings.of(Scope.TOPIC, new.configs)
    result.num_partitions = len(new.partitions)
    result.replication_factor = len(new.partitions[0].replicas)
    result.configs = [
        CreatableTopicConfigs(
            name=setting.name,
            value=new.configs.get(setting.name, effective.text_of(setting)),
            read_only=False,
            config_source=effective.source_of(setting),
            is_sensitive=setting.sensitive,
        )
        for setting in sorted(TOPIC.values(), key=lambda setting: setting.name)
        if not setting.internal
    ]
    return result
