"""What an application does besides its queries, for as long as one of them runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.streams.lower.membership import Membership
from millstream.streams.lower.purging import Purging
from millstream.streams.lower.trimming import Trimming

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.settings import Settings


class Beside(NamedTuple):
    """Each has a thread of its own."""

    membership: Membership
    trimming: Trimming
    purging: Purging


def beside_of(parts: Sequence[SubTopology], settings: Settings) -> Beside:
    """Not started yet."""
    name, connection = settings.application_id, settings.connection
    topics = dict.fromkeys(part.full_name(topic, name) for part in parts for topic in part.topics)
    retentions_ms = {
        part.changelog(store, name): store.changelog_retention_ms
        for part in parts
        for store in part.logged
        # Who says another retention leaves it to the brokers.
        if store.changelog_retention_ms is not None and "retention.ms" not in settings.topic_settings
    }
    internal = [part.full_name(topic, name) for part in parts for topic in part.internal_topics]
    return Beside(
        Membership(connection, name, list(topics)),
        Trimming(connection, retentions_ms, name),
        Purging(connection, internal, settings.purge_interval_ms, name),
    )
