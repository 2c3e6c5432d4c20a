"""Where a group shall go on reading: from what a person says to offsets, and the notes that belong to them.

A plan is made first and can be shown; `commit_offsets` carries it out. An offset that a partition does not have is
replaced by the nearest that it has, as Kafka's tool does, and the plan says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from millstream.cli.declare import UsageError
from millstream.client.admin.described_groups import describe_groups
from millstream.client.errors import Refusal
from millstream.client.groups import Committed, commit_offsets, committed_offsets
from millstream.client.offsets import EARLIEST, LATEST, list_offsets
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.client.admin.described_groups import GroupDescription
    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.metadata import Topic
    from millstream.client.sync import SyncClient

# States in which nobody reads for the group, so that its offsets can be moved.
_INACTIVE = ("Empty", "Dead")


def active_now(client: SyncClient, group: str) -> GroupDescription | None:
    """The group if somebody reads for it; one that does not exist yet may get offsets before its first member comes."""
    found = client.run(describe_groups, [group])[group]
    if isinstance(found, Refusal):
        if found.code is ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise found
    return None if found.state in _INACTIVE else found


@dataclass(frozen=True, slots=True)
class ToTime:
    """The first record at or after a time; EARLIEST and LATEST are times too."""

    timestamp_ms: int


def at_time(timestamp_ms: int) -> ToTime:
    """A time from a person: before 1970 there are no records, and brokers give negative times meanings of their own."""
    return ToTime(max(timestamp_ms, 0))


@dataclass(frozen=True, slots=True)
class ToOffset:
    """One offset for every partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class ShiftBy:
    """So many records forward, or back."""

    count: int


@dataclass(frozen=True, slots=True)
class ToCurrent:
    """Where it stands; at the end where it stands nowhere yet."""


@dataclass(frozen=True, slots=True)
class ToListed:
    """An offset for each partition."""

    offsets: Mapping[TopicPartition, int]


Target = ToTime | ToOffset | ShiftBy | ToCurrent | ToListed


class Note(NamedTuple):
    """`wanted` is an offset that the partition does not have, or None: no record is that young."""

    place: TopicPartition
    wanted: int | None
    used: int

    def sentence(self) -> str:
        topic, index = self.place
        if self.wanted is None:
            return f"topic {topic!r} partition {index} has no record that young: the end, {self.used}, is taken"
        return f"topic {topic!r} partition {index} has no offset {self.wanted}: {self.used} is taken"


@dataclass(frozen=True, slots=True)
class Plan:
    """The new offsets, and what had to be adapted."""

    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def parse_scope(texts: Sequence[str]) -> dict[str, list[int] | None]:
    """`orders` is a whole topic, `orders:0,2` two of its partitions."""
    scope: dict[str, list[int] | None] = {}
    for text in texts:
        topic, colon, listed = text.partition(":")
        if not colon:
            scope[topic] = None
            continue
        try:
            indexes = [int(index) for index in listed.split(",")]
        except ValueError:
            raise UsageError(f"{text!r} should look like topic or topic:0,1,2") from None
        known = scope.get(topic, [])
        scope[topic] = None if known is None else [*known, *indexes]
    return scope


def partitions_in(client: SyncClient, group: str, scope: Mapping[str, list[int] | None] | None) -> list[TopicPartition]:
    """The partitions meant; without a scope all that the group has offsets for."""
    if scope is None:
        return sorted(client.run(committed_offsets, group))
    places: list[TopicPartition] = []
    for name, indexes in scope.items():
        topic = client.run(_topic, name)
        for index in indexes or ():
            topic.partition(index)
        places += [(name, index) for index in (range(len(topic.partitions)) if indexes is None else indexes)]
    return sorted(dict.fromkeys(places))


async def _topic(client: Client, name: str) -> Topic:
    return await client.metadata.topic(name)


def make_plan(client: SyncClient, group: str, places: Sequence[TopicPartition], target: Target) -> Plan:
    """The offset of each partition after the reset; nothing is changed yet."""
    if not places:
        return Plan()
    match target:
        case ToTime(timestamp_ms):
            return _by_time(client, places, timestamp_ms)
        case ToOffset(offset):
            return _within(client, dict.fromkeys(places, offset))
        case ToListed(offsets):
            return _within(client, {place: offsets[place] for place in places})
        case ShiftBy(count):
            standing = client.run(committed_offsets, group, places)
            for topic, index in places:
                if (topic, index) not in standing:
                    raise UsageError(
                        f"group {group!r} has no offset for topic {topic!r} partition {index} that could be shifted"
                    )
            return _within(client, {place: standing[place].offset + count for place in places})
        case ToCurrent():
            standing = client.run(committed_offsets, group, places)
            ends = client.run(list_offsets, dict.fromkeys(places, LATEST))
            return Plan(
                {place: standing[place].offset if place in standing else ends[place].offset for place in places}
            )


def _by_time(client: SyncClient, places: Sequence[TopicPartition], timestamp_ms: int) -> Plan:
    plan = Plan()
    found = client.run(list_offsets, dict.fromkeys(places, timestamp_ms))
    ends = client.run(list_offsets, dict.fromkeys(places, LATEST))
    for place in places:
        offset = found[place].offset
        if offset < 0:
            offset = ends[place].offset
            plan.notes.append(Note(place, None, offset))
        plan.offsets[place] = offset
    return plan


def _within(client: SyncClient, wanted: Mapping[TopicPartition, int]) -> Plan:
    """Offsets that the partitions have."""
    plan = Plan()
    starts = client.run(list_offsets, dict.fromkeys(wanted, EARLIEST))
    ends = client.run(list_offsets, dict.fromkeys(wanted, LATEST))
    for place, offset in wanted.items():
        used = min(max(offset, starts[place].offset), ends[place].offset)
        if used != offset:
            plan.notes.append(Note(place, offset, used))
        plan.offsets[place] = used
    return plan


def carry_out(client: SyncClient, group: str, plan: Plan) -> None:
    if plan.offsets:
        client.run(commit_offsets, group, {place: Committed(offset) for place, offset in plan.offsets.items()})
