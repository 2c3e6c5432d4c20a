"""A running application is a member of its group, as one of Kafka Streams is.

Spark assigns the work, so the member does nothing but stay. That it is there is what others look at: a reset, ours or
Kafka's, refuses to move the offsets of a group with members, and the coordinator forgets no offsets of topics that a
member is subscribed to, however long they are silent; without members it counts from when the last one left.

A transaction's offsets are taken from anybody who has the producer. Without transactions a group with members takes
offsets from these alone, so `commit` goes through the member. One whose place is lost joins again; until it has, a
commit waits.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from millstream.client.errors import ClientError, TimedOut
from millstream.client.group_member import GroupMember
from millstream.client.groups import commit_offsets
from millstream.client.sync import SyncClient

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.groups import Committed

log = logging.getLogger("millstream.streams")

_BEAT_S: Final = 3.0
# How long the others are waited for at a rebalance: there are others only where a driver was killed a moment ago.
_REBALANCE_MS: Final = 60_000
_LEAVE_MS: Final = 5_000
_JOINED_S: Final = 120.0


class Membership:
    """The member of one running application, on a thread of its own."""

    def __init__(self, connection: Mapping[str, str], group: str, topics: Sequence[str]) -> None:
        self._group = group
        self._client = SyncClient(connection)
        self._member = GroupMember(self._client.client, group, topics, rebalance_timeout_ms=_REBALANCE_MS)
        self._joined = asyncio.Event()
        # Set when the group does not want us: offsets are stored as they can be.
        self._gave_up = False
        self._staying: Future[None] | None = None

    def start(self) -> None:
        """Join, and stay; nobody waits for it."""
        self._staying = self._client.start(self._stay)

    async def _stay(self, _: Client) -> None:
        while True:
            try:
                if not self._joined.is_set():
                    await self._member.join()
                    self._joined.set()
                elif not await self._member.heartbeat():
                    self._joined.clear()
                    continue
            except ClientError as error:
                if not error.retriable:
                    log.warning("the application is no member of its group %s: %s", self._group, error)
                    self._gave_up = True
                    self._joined.set()
                    return
                self._joined.clear()
            await asyncio.sleep(_BEAT_S)

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Store offsets without a transaction."""
        self._client.run(self._commit, offsets)

    async def _commit(self, client: Client, offsets: Mapping[TopicPartition, Committed]) -> None:
        while True:
            try:
                await asyncio.wait_for(self._joined.wait(), _JOINED_S)
            except TimeoutError:
                raise TimedOut(
                    f"group {self._group!r} has not let the application in within {_JOINED_S:.0f} s"
                ) from None
            if self._gave_up:
                return await commit_offsets(client, self._group, offsets)
            if await self._member.commit(offsets):
                return None
            # The next heartbeat finds the same, and joins again.
            await asyncio.sleep(_BEAT_S)

    def close(self) -> None:
        """Leave, so that a reset need not wait for the session to end."""
        if self._staying is not None:
            self._staying.cancel()
            try:
                self._client.run(self._leave)
            except ClientError as error:
                log.info("group %s was not left, and waits for the session to end: %s", self._group, error)
        self._client.close()

    async def _leave(self, _: Client) -> None:
        await self._member.leave(_LEAVE_MS)
