"""Wakes long polls once per turn of the event loop, however many appends came in that turn.

Waking inside the append would make a producer pay for its consumers, and a consumer fetch batch by batch what one
fetch could bring.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.broker.partition import EndReader, Partition


class Wakeups:
    """The partitions with news in this turn of the loop."""

    __slots__ = ("_loop", "_marked")

    def __init__(self) -> None:
        self._marked: list[Partition] = []
        self._loop = asyncio.get_running_loop()

    def mark(self, partition: Partition) -> None:
        partition.is_marked = True
        self._marked.append(partition)
        if len(self._marked) == 1:
            self._loop.call_soon(self._wake)

    def _wake(self) -> None:
        marked, self._marked = self._marked, []
        followers: dict[EndReader, None] = {}
        for partition in marked:
            partition.is_marked = False
            for reader in partition.end_readers:
                reader.news_of(partition)
                followers[reader] = None
        # Followers first: what they fetch is what makes it readable for the others.
        for follower in followers:
            follower.more_to_read()
        for partition in marked:
            for other in list(partition.readers):
                other.more_to_read()
