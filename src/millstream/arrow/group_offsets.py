"""A consumer group's offsets, for readers that are no members of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from millstream.arrow.positions import MISSING
from millstream.client.groups import Committed, commit_offsets, committed_offsets
from millstream.client.options import options_from
from millstream.client.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.options import Bootstrap


def committed(bootstrap: Bootstrap, group: str) -> dict[TopicPartition, int]:
    """Where the group goes on reading; `start=Group(name)` starts there."""
    with SyncClient(options_from(bootstrap)) as client:
        return {place: found.offset for place, found in client.run(committed_offsets, group).items()}


def commit(bootstrap: Bootstrap, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
    """Store where the group goes on, `stream.offsets` for instance; refused while the group has members."""
    with SyncClient(options_from(bootstrap)) as client:
        stored = {place: Committed(offset, metadata) for place, offset in offsets.items()}
        client.run(_commit, group, stored)


async def _commit(client: Client, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
    # A coordinator's word that a topic is unknown may pass, right after it was made; metadata knows better.
    for topic, index in offsets:
        await client.retrying(partial(_known, client, topic, index), final=MISSING)
    await commit_offsets(client, group, offsets)


async def _known(client: Client, topic: str, index: int) -> None:
    (await client.metadata.topic(topic)).partition(index)
