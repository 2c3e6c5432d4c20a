"""Which of a query's sources are topics of the cluster that it writes to: a group has no offsets of others.

Another cluster may have a topic of the same name, a mirror for instance. Its id tells the two apart; where it is not
known (Spark's own Kafka source keeps none), a topic that lacks a partition that was read is another one for certain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millstream.client.errors import Refusal
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.client.client import Client
    from millstream.client.metadata import Topic
    from millstream.client.sync import SyncClient
    from millstream.spark.exactly_once_checkpoint import SourceTopic

_MISSING: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class SourceUnknown(RuntimeError):
    """A source that has to be here is not, as far as the cluster knows: it may learn of it."""


class OwnSources:
    """Remembers which are. The others are asked for again: they may come, or a broker may learn of them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str | None, int], None] = {}

    def among(self, client: SyncClient, topics: list[SourceTopic]) -> list[SourceTopic]:
        unsure = [topic for topic in topics if _key(topic) not in self._known]
        if unsure:
            found = client.run(_topics_named, dict.fromkeys(topic.name for topic in unsure))
            self._known |= {_key(topic): None for topic in unsure if is_the_same(topic, found.get(topic.name))}
        return [topic for topic in topics if _key(topic) in self._known]

    def forget(self) -> None:
        """Something went wrong, and it may be this."""
        self._known.clear()


def is_the_same(topic: SourceTopic, found: Topic | None) -> bool:
    """Whether what a query has read is the topic that has its name here."""
    if found is None:
        return False
    if topic.id is not None:
        return topic.id == str(found.id)
    return all(index < len(found.partitions) for _, index in topic.ends)


def _key(topic: SourceTopic) -> tuple[str, str | None, int]:
    return topic.name, topic.id, len(topic.ends)


async def _topics_named(client: Client, names: Iterable[str]) -> dict[str, Topic]:
    """Those that exist, as the cluster knows them now."""

    async def attempt() -> dict[str, Topic]:
        for name in names:
            client.metadata.forget(name)
        found: dict[str, Topic] = {}
        for name, each in (await client.metadata.topics(names)).items():
            if not isinstance(each, Refusal):
                found[name] = each
            elif each.code != _MISSING:
                raise each
        return found

    return await client.retrying(attempt)
