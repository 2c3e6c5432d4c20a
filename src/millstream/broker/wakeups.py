"""Wakes long polls once all of what a connection has sent is handled, however many appends that was.

Waking inside the append would make a producer pay for its consumers, and a consumer fetch batch by batch what one
fetch could bring. What is appended otherwise (by coordinators, on a timer) wakes them at the end of the loop's turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millstream.broker.partition import EndReader, Partition


class Wakeups:
    """The partitions with news in this turn of the loop: a longer log for followers, a higher watermark for the rest.

    The two are told apart because of what it costs to look: an append that others must replicate first wakes no
    consumer in vain, and its commit no follower.
    """

    __slots__ = ("_committed", "_grown", "_loop", "_waking")

    def __init__(self) -> None:
        self._grown: list[Partition] = []
        self._committed: list[Partition] = []
        self._loop = asyncio.get_running_loop()
        self._waking = False

    def log_grew(self, partition: Partition) -> None:
        """Wake those who read up to the end of its log."""
        if partition.end_readers and not partition.grew:
            partition.grew = True
            self._call_soon()
            self._grown.append(partition)

    def more_committed(self, partition: Partition) -> None:
        """Wake those who read up to its high watermark."""
        if partition.readers and not partition.committed_more:
            partition.committed_more = True
            self._call_soon()
            self._committed.append(partition)

    def _call_soon(self) -> None:
        if not self._grown and not self._committed:
            self._loop.call_soon(self.wake_now)

    def wake_now(self) -> None:
        """Wake those who were not woken yet. What comes of it is left to the end of the turn: a poll's answer may let
        another connection be served, and so on."""
        if self._waking or not (self._grown or self._committed):
            return
        self._waking = True
        try:
            self._wake()
        finally:
            self._waking = False

    def _wake(self) -> None:
        grown, self._grown = self._grown, []
        committed, self._committed = self._committed, []
        # First of all: whatever happens below, the next news are told again.
        for partition in grown:
            partition.grew = False
        for partition in committed:
            partition.committed_more = False
        followers: dict[EndReader, None] = {}
        for partition in grown:
            for reader in partition.end_readers:
                reader.news_of(partition)
                followers[reader] = None
        # Followers first: what they fetch is what makes it readable for the others.
        for follower in followers:
            follower.more_to_read()
        for partition in committed:
            for other in list(partition.readers):
                other.more_to_read()
