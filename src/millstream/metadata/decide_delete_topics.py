"""DeleteTopics: by name, and since version 6 by id.

A topic is named once in a request, in one way. RemoveTopicRecord takes its partitions and configs with it; every
broker deletes its replicas in the background when it replays the record.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from millstream.metadata.decision import Decision
from millstream.protocol.errors import (
    BrokerError,
    InvalidRequest,
    TopicAuthorizationFailed,
    TopicDeletionDisabled,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millstream.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from millstream.protocol.messages.metadata.remove_topic import RemoveTopicRecord
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.metadata.image import MetadataImage, TopicImage


def decide_delete_topics(
    image: MetadataImage,
    request: DeleteTopicsRequest,
    *,
    version: int,
    enabled: bool = True,
    may_delete: Callable[[str], bool] = lambda _: True,
    may_describe: Callable[[str], bool] = lambda _: True,
) -> Decision[DeleteTopicsResponse]:
    """Remove what can be removed; one bad entry does not stop the others."""
    entries = request.topics or [DeleteTopicState(name=name, topic_id=ZERO_UUID) for name in request.topic_names]
    removed: list[RemoveTopicRecord] = []
    results: dict[object, DeletableTopicResult] = {}
    topics = [_find(image, entry) for entry in entries]
    mentions = Counter(_identity(entry, topic) for entry, topic in zip(entries, topics, strict=True))
    for position, (entry, topic) in enumerate(zip(entries, topics, strict=True)):
        # Who names a topic twice hears of it once; entries that name nothing are each a mistake of their own.
        key = _identity(entry, topic) if _names_something(entry) else position
        try:
            _check_enabled(version, enabled=enabled)
            _check_one_way(entry)
            if mentions[_identity(entry, topic)] > 1:
                raise InvalidRequest("The request names this topic more than once.")
            topic = _check_known_and_allowed(entry, topic, may_delete)
        except BrokerError as refusal:
            known = topic if topic is not None and may_describe(topic.name) else None
            results[key] = DeletableTopicResult(
                name=entry.name if known is None else known.name,
                topic_id=entry.topic_id,
                error_code=refusal.code,
                error_message=refusal.message,
            )
        else:
            removed.append(RemoveTopicRecord(topic_id=topic.id))
            results[key] = DeletableTopicResult(name=topic.name, topic_id=topic.id)
    return Decision(tuple(removed), DeleteTopicsResponse(responses=list(results.values())))


def _find(image: MetadataImage, entry: DeleteTopicState) -> TopicImage | None:
    if entry.topic_id != ZERO_UUID:
        return image.topics.by_id.get(entry.topic_id)
    return None if entry.name is None else image.topics.by_name.get(entry.name)


def _check_enabled(version: int, *, enabled: bool) -> None:
    if not enabled:
        # The code came with version 3; older clients would not know it.
        refusal = InvalidRequest if version < 3 else TopicDeletionDisabled
        raise refusal("Topics cannot be deleted: delete.topic.enable is false.")


def _identity(entry: DeleteTopicState, topic: TopicImage | None) -> object:
    """What two entries for the same topic have in common, be it named by name or by id."""
    return (entry.name, entry.topic_id) if topic is None else topic.id


def _names_something(entry: DeleteTopicState) -> bool:
    return entry.name is not None or entry.topic_id != ZERO_UUID


def _check_one_way(entry: DeleteTopicState) -> None:
    if entry.name is not None and entry.topic_id != ZERO_UUID:
        raise InvalidRequest("A topic is deleted by its name or by its id; this entry has both.")
    if not _names_something(entry):
        raise InvalidRequest("A topic is deleted by its name or by its id; this entry has neither.")


def _check_known_and_allowed(
    entry: DeleteTopicState, topic: TopicImage | None, may_delete: Callable[[str], bool]
) -> TopicImage:
    name = entry.name if topic is None else topic.name
    if name is not None and not may_delete(name):
        raise TopicAuthorizationFailed(f"Deleting topic {entry.name or entry.topic_id} is not allowed.")
    if topic is None:
        if entry.name is None:
            raise UnknownTopicId(f"No topic has the id {entry.topic_id}.")
        raise UnknownTopicOrPartition(f"There is no topic '{entry.name}'.")
    return topic
