"""What differs between two images: for a node that took a snapshot where it had fallen too far behind to replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.metadata.delta import Changes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.metadata.image import MetadataImage


def difference(before: MetadataImage, after: MetadataImage) -> Changes:
    """The changes that lead from one to the other, as if its records had been replayed in one batch."""
    old, new = before.topics.by_id, after.topics.by_id
    changed = {}
    for topic_id, topic in new.items():
        known = old.get(topic_id)
        if known is not None and known.partitions != topic.partitions:
            changed[topic.name] = _changed_keys(known.partitions, topic.partitions)
    return Changes(
        topics_deleted=tuple(topic for topic_id, topic in old.items() if topic_id not in new),
        topics_created=tuple(topic for topic_id, topic in new.items() if topic_id not in old),
        partitions_changed=changed,
        configs=_changed_keys(before.configs, after.configs),
        brokers=_changed_keys(before.brokers, after.brokers),
        controllers=_changed_keys(before.controllers, after.controllers),
        features=_changed_keys(before.features, after.features),
        quotas=_changed_keys(before.quotas, after.quotas),
        acls=_changed_keys(before.acls, after.acls),
        scram=_changed_keys(before.scram, after.scram),
        tokens=_changed_keys(before.tokens, after.tokens),
        producer_ids=before.next_producer_id != after.next_producer_id,
    )


def _changed_keys(before: Mapping[Any, Any], after: Mapping[Any, Any]) -> tuple[Any, ...]:
    gone = (key for key in before if key not in after)
    other = (key for key, value in after.items() if key not in before or before[key] != value)
    return (*gone, *other)
