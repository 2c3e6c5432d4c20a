"""Partitions sorted into what one request holds: by topic, and by the broker that leads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.client.client import LeaderOf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.client.client import Client

TopicPartition = tuple[str, int]


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Indexes per topic, in the order given."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics


async def by_leader(client: Client, partitions: Iterable[TopicPartition]) -> dict[int, list[TopicPartition]]:
    """Partitions per leader; a Refusal is raised for one that has none."""
    leaders: dict[int, list[TopicPartition]] = {}
    for topic, index in partitions:
        leaders.setdefault(await client.resolve(LeaderOf(topic, index)), []).append((topic, index))
    return leaders
