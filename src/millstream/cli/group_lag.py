"""How far groups have read: every partition with its offset, its end, and the member that reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from millstream.client.groups import committed_offsets
from millstream.client.offsets import LATEST, list_offsets

if TYPE_CHECKING:
    from collections.abc import Collection

    from millstream.client.admin.described_groups import GroupDescription, GroupMember
    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.groups import Committed


class Position(NamedTuple):
    """One partition of a group; None where nothing was committed, or nobody leads the partition or reads it."""

    topic: str
    partition: int
    committed: int | None
    leader_epoch: int | None
    end: int | None
    member: GroupMember | None

    @property
    def lag(self) -> int | None:
        return None if self.committed is None or self.end is None else self.end - self.committed


async def group_positions(client: Client, group: GroupDescription) -> list[Position]:
    """Members with the most partitions first, each with its partitions in order; then what nobody reads."""
    standing = await committed_offsets(client, group.id)
    busy = sorted((each for each in group.members if each.assignment), key=lambda each: -len(each.assignment))
    owned = {place for member in busy for place in member.assignment}
    ends = await _ends(client, owned | standing.keys())

    def position(place: TopicPartition, member: GroupMember | None) -> Position:
        found: Committed | None = standing.get(place)
        return Position(
            *place,
            committed=None if found is None else found.offset,
            leader_epoch=None if found is None or found.leader_epoch < 0 else found.leader_epoch,
            end=ends.get(place),
            member=member,
        )

    read = [position(place, member) for member in busy for place in sorted(member.assignment)]
    return read + [position(place, None) for place in sorted(standing) if place not in owned]


async def _ends(client: Client, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Partitions without a leader, or of topics that are gone, have no end that anybody knows."""
    known = {topic.name: topic for topic in await client.retrying(client.metadata.all_topics)}
    led = [
        (topic, index)
        for topic, index in sorted(places)
        if topic in known and index < len(known[topic].partitions) and known[topic].partitions[index].leader_id >= 0
    ]
    if not led:
        return {}
    found = await list_offsets(client, dict.fromkeys(led, LATEST))
    return {place: at.offset for place, at in found.items()}
