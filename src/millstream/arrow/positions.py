"""From what a caller says about topics, partitions and places to offsets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Final, Literal, SupportsIndex

from millstream.client.errors import Refusal, topic_subject
from millstream.client.groups import committed_offsets
from millstream.client.offsets import EARLIEST, LATEST, list_offsets
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition

Topics = str | Iterable[str] | re.Pattern[str]
Partitions = int | Iterable[int] | Iterable["TopicPartition"]
End = Literal["earliest", "latest"]
MISSING: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_NAMED: Final[dict[str, int]] = {"earliest": EARLIEST, "latest": LATEST}


@dataclass(frozen=True, slots=True)
class Group:
    """Where a consumer group has committed; partitions without a commit start at `otherwise`."""

    name: str
    otherwise: End = "earliest"


Place = End | int | datetime
Where = Place | Group | Mapping["TopicPartition", Place] | Mapping[int, Place]


async def find_partitions(client: Client, topics: Topics, partitions: Partitions | None) -> list[TopicPartition]:
    """The partitions meant, by topic and index. A name that begins with ^ is a pattern, as for librdkafka."""
    names = await client.retrying(lambda: _topic_names(client, topics))
    counts = {name: await partition_count(client, name) for name in names}
    everything = [(name, index) for name in names for index in range(counts[name])]
    if partitions is None:
        return everything
    given = partitions if isinstance(partitions, Iterable) else [partitions]
    wanted = list(
        dict.fromkeys((each[0], index(each[1])) if isinstance(each, tuple) else index(each) for each in given)
    )
    chosen = [place for place in everything if place in wanted or place[1] in wanted]
    for each in wanted:
        if each not in everything and each not in [index for _, index in everything]:
            subject = topic_subject(", ".join(names))
            raise Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {each}", subject=subject)
    return chosen


async def partition_count(client: Client, topic: str) -> int:
    """How many partitions a topic has; one that does not exist is not waited for."""
    found = await client.retrying(lambda: client.metadata.topic(topic), final=MISSING)
    return len(found.partitions)


async def _topic_names(client: Client, topics: Topics) -> list[str]:
    if isinstance(topics, str):
        topics = re.compile(topics) if topics.startswith("^") else [topics]
    if not isinstance(topics, re.Pattern):
        return list(dict.fromkeys(topics))
    # As consumers do: internal topics are read only by those who name them.
    found = await client.metadata.all_topics()
    return [topic.name for topic in found if not topic.internal and topics.match(topic.name)]


async def find_offsets(
    client: Client, places: list[TopicPartition], where: Where, *, otherwise: End, read_committed: bool
) -> dict[TopicPartition, int]:
    """The offset meant by `where` in each partition; `otherwise` is for those that a mapping leaves out."""
    if isinstance(where, Group):
        stored = await committed_offsets(client, where.name, places)
        given: dict[TopicPartition, Place] = {
            place: stored[place].offset if place in stored else where.otherwise for place in places
        }
    elif isinstance(where, Mapping):
        given = _spelled_out(places, where, otherwise)
    else:
        given = dict.fromkeys(places, where)
    given = {place: _whole(each) for place, each in given.items()}
    asked = {place: _timestamp(each) for place, each in given.items()}
    lookups = {place: timestamp for place, timestamp in asked.items() if timestamp is not None}
    found = await list_offsets(client, lookups, read_committed=read_committed) if lookups else {}
    # No record is that young: what comes next will be.
    beyond = {place: LATEST for place, each in found.items() if each.offset < 0}
    if beyond:
        found |= await list_offsets(client, beyond, read_committed=read_committed)
    offsets: dict[TopicPartition, int] = {}
    for place, each in given.items():
        offsets[place] = each if isinstance(each, int) and each >= 0 else found[place].offset
    return offsets


def _spelled_out(
    places: list[TopicPartition], where: Mapping[TopicPartition, Place] | Mapping[int, Place], otherwise: End
) -> dict[TopicPartition, Place]:
    given: dict[TopicPartition, Place] = dict.fromkeys(places, otherwise)
    topics = list(dict.fromkeys(topic for topic, _ in places))
    for key, each in where.items():
        if not isinstance(key, tuple) and len(topics) != 1:
            raise ValueError(f"partition {key} of which topic? There are {len(topics)}: write (topic, partition)")
        place = key if isinstance(key, tuple) else (topics[0], key)
        if place not in given:
            raise ValueError(f"an offset is given for {place}, which is not among the partitions to read")
        given[place] = each
    return given


def _whole(place: Place) -> Place:
    """NumPy's whole numbers are as good as Python's."""
    return index(place) if isinstance(place, SupportsIndex) else place


def _timestamp(place: Place) -> int | None:
    """What ListOffsets is asked for; None for an offset. As in Spark, -1 and -2 are the latest and the earliest."""
    match place:
        case int():
            if place < EARLIEST:
                raise ValueError(f"{place} is no offset")
            return place if place < 0 else None
        case datetime():
            if place.tzinfo is None:
                raise ValueError("a time needs a time zone: datetime.now(timezone.utc)")
            # The first millisecond at or after it, and in whole numbers: fractions of 2026 are not exact. Nothing is
            # older than 1970, and numbers below 0 have meanings of their own.
            return max(0, -((_EPOCH - place) // _MS))
        case "earliest" | "latest":
            return _NAMED[place]
    raise ValueError(f"{place!r} is no place in a topic: give an offset, a time, 'earliest' or 'latest'")
