"""Where state ends in its topics, for whoever reads it back."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from millstream.client.admin.hanging_transactions import open_transactions
from millstream.client.errors import ClientError, partition_subject
from millstream.client.offsets import LATEST, list_offsets
from millstream.streams.errors import StateLost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition

_LOOK_S: Final = 0.02
# How long a coordinator may take to notice that the time of a transaction is up, and to write that everywhere.
_ENDING_MS: Final = 60_000


def patience_ms(transaction_timeout_ms: int) -> int:
    """How long to wait for what lies behind an open transaction: whoever was killed, it has ended by then."""
    return transaction_timeout_ms + _ENDING_MS


async def settled_ends(client: Client, places: Iterable[TopicPartition], patience_ms: int) -> dict[TopicPartition, int]:
    """Where committed records end, once all is decided that was there when this was asked.

    Sub-topologies share the changelog of tasks. One that was killed leaves a transaction open there, and what another
    has committed behind it could not be read. It ends when that one goes on, which every query does for itself before
    it reads state, or when its time is up. One that is open for longer will never end by itself: StateLost says so.
    """
    wanted = await list_offsets(client, dict.fromkeys(places, LATEST))
    deadline = time.monotonic() + patience_ms / 1000
    while True:
        found = await list_offsets(client, dict.fromkeys(wanted, LATEST), read_committed=True)
        behind = [place for place, end in wanted.items() if found[place].offset < end.offset]
        if not behind:
            return {place: each.offset for place, each in found.items()}
        if time.monotonic() >= deadline:
            raise StateLost(await _never_ends(client, behind[0], patience_ms))
        await asyncio.sleep(_LOOK_S)


async def _never_ends(client: Client, place: TopicPartition, patience_ms: int) -> str:
    """What is open there, as far as the broker says."""
    try:
        found = await open_transactions(client, [place])
    except ClientError:
        found = []
    who = f"producer id {found[0].producer_id}, from offset {found[0].start_offset} on" if found else "unknown"
    return (
        f"state in {partition_subject(*place)} lies behind a transaction ({who}) that has not ended within "
        f"{patience_ms} ms, so it cannot be read whole: `millstream transaction find-hanging --topic {place[0]}` shows "
        "whether it ever will"
    )
