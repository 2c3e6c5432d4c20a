"""A running application is a member of its group, as one of Kafka Streams is.

Spark assigns the work, so the member does nothing but stay. That it is there is what others look at: a reset, ours or
Kafka's, refuses to move the offsets of a group with members, and the coordinator forgets no offsets of topics that a
member is subscribed to, however long they are silent; without members it counts from when the last one left.

A transaction's offsets are taken from anybody who has the producer. Without transactions a group with members takes
offsets from these alone, so `commit` goes through the member. One whose place is lost joins again; until it has, a
commit waits.

It is a static member, named as the application: a driver that starts takes the place of one that was killed at once,
not when its session has ended. If the other one lives, its offsets are refused from then on, and so it ends.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from millstream.client.errors import ClientError, Refusal, TimedOut
from millstream.client.group_member import REJOIN, GroupMember
from millstream.client.groups import commit_offsets
from millstream.client.sync import SyncClient
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.groups import Committed

log = logging.getLogger("millstream.streams")

_BEAT_S: Final = 3.0
# After what will hardly be better in a moment, such as a missing right.
_PAUSE_S: Final = 30.0
# How long others are waited for at a rebalance: there are none, but for what has joined under another name.
_REBALANCE_MS: Final = 60_000
_LEAVE_MS: Final = 5_000
_COMMIT_S: Final = 120.0


class TakenOver(ClientError):
    """Another driver runs the application now."""

    def __init__(self, group: str) -> None:
        super().__init__(f"another driver runs the application {group!r} now, so this one stores no offsets any more")


class Membership:
    """The member of one running application, on a thread of its own."""

    def __init__(self, connection: Mapping[str, str], group: str, topics: Sequence[str]) -> None:
        self._group = group
        self._client = SyncClient(connection)
        # The topics have been prepared a moment ago: if nobody is there now, that is no wrong address.
        self._client.client.nodes.expected = True
        self._member = GroupMember(
            self._client.client, group, topics, rebalance_timeout_ms=_REBALANCE_MS, instance_id=group
        )
        self._is_member = False
        self._is_taken_over = False
        # Whether it is known how offsets are stored: as a member; or as they can be, if the group does not want us.
        self._settled = asyncio.Event()
        self._staying: Future[None] | None = None

    def start(self) -> None:
        """Join, and stay; nobody waits for it."""
        self._staying = self._client.start(self._stay)

    async def _stay(self, _: Client) -> None:
        while not self._is_taken_over:
            pause_s = _BEAT_S
            try:
                if not self._is_member:
                    await self._member.join()
                    self._is_member = True
                    self._settled.set()
                elif not await self._member.heartbeat():
                    self._lost()
                    continue
            except Exception as error:  # noqa: BLE001  # whatever it is, nobody else would hear of it
                pause_s = self._failed(error)
            await asyncio.sleep(pause_s)

    def _lost(self) -> None:
        self._is_member = False
        self._settled.clear()

    def _failed(self, error: Exception) -> float:
        """How long to wait before the next try."""
        self._lost()
        if isinstance(error, ClientError) and error.retriable:
            return _BEAT_S
        self._is_taken_over = _is_fenced(error)
        log.warning("the application is no member of its group %s: %s", self._group, error)
        self._settled.set()
        return _PAUSE_S

    def commit(self, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Store offsets without a transaction."""
        self._client.run(self._commit, offsets)

    async def _commit(self, client: Client, offsets: Mapping[TopicPartition, Committed]) -> None:
        try:
            async with asyncio.timeout(_COMMIT_S):
                while True:
                    if await self._commit_once(client, offsets):
                        return
                    # The next heartbeat finds the same, and joins again.
                    await asyncio.sleep(_BEAT_S)
        except TimeoutError:
            raise TimedOut(f"group {self._group!r} has taken no offsets within {_COMMIT_S:.0f} s") from None

    async def _commit_once(self, client: Client, offsets: Mapping[TopicPartition, Committed]) -> bool:
        """False if the place has been lost, or found, meanwhile."""
        await self._settled.wait()
        if self._is_taken_over:
            raise TakenOver(self._group)
        try:
            if self._is_member:
                return await self._member.commit(offsets)
            await commit_offsets(client, self._group, offsets)
        except Refusal as refusal:
            if _is_fenced(refusal):
                raise TakenOver(self._group) from refusal
            if refusal.code not in REJOIN:
                raise
            return False
        return True

    def close(self) -> None:
        """Leave, so that a reset need not wait for the session to end."""
        staying, self._staying = self._staying, None
        try:
            if staying is not None:
                staying.cancel()
                self._client.run(self._leave)
        except ClientError as error:
            log.info("group %s was not left, and waits for the session to end: %s", self._group, error)
        finally:
            self._client.close()

    async def _leave(self, _: Client) -> None:
        await self._member.leave(_LEAVE_MS)


def _is_fenced(error: Exception) -> bool:
    return isinstance(error, Refusal) and error.code is ErrorCode.FENCED_INSTANCE_ID
