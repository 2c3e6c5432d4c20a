"""Where state ends in its topics, for whoever reads it back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from millstream.client.offsets import LATEST, list_offsets

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition

_LOOK_S: Final = 0.02


async def settled_ends(client: Client, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where committed records end, once all is decided that was there when this was asked.

    Sub-topologies share the changelog of tasks. One that was killed leaves a transaction open there, and what another
    has committed behind it could not be read. It ends when that one goes on, which every query does for itself before
    it reads state, or when its time is up.
    """
    wanted = await list_offsets(client, dict.fromkeys(places, LATEST))
    while True:
        found = await list_offsets(client, dict.fromkeys(wanted, LATEST), read_committed=True)
        if all(found[place].offset >= end.offset for place, end in wanted.items()):
            return {place: each.offset for place, each in found.items()}
        await asyncio.sleep(_LOOK_S)
