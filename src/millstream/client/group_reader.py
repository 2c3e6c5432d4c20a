"""Reading as a member of a group: partitions come and go, and what was dealt with is committed.

    reader = GroupReader(client, GroupMember(client, "billing", ["orders"]))
    for answer in await reader.next(1_000):
        ...
        reader.passed((answer.fetched.topic, answer.fetched.partition), offset + 1)
    await reader.close()

Offsets are committed only for what the caller has said it is done with, at the next call after a while, before a
rebalance and at the end. So a crash shows some records twice and loses none. Heartbeats run beside, and what they
hear (a rebalance, an error) is acted upon in `next`, where no records are in the caller's hands.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.client.errors import ClientError
from millstream.client.groups import committed_offsets
from millstream.client.offsets import LATEST, list_offsets
from millstream.client.tail import Tail

if TYPE_CHECKING:
    from millstream.client.client import Client
    from millstream.client.group_member import GroupMember
    from millstream.client.grouping import TopicPartition
    from millstream.client.tail import Arrived

COMMIT_EVERY_S = 5.0
# A third of the session would do; Kafka's consumers beat more often, so that rebalances are heard of sooner.
HEARTBEATS_PER_SESSION = 15
# A person who pressed Ctrl-C waits this long at the most; the session's end does the rest.
CLOSE_TIMEOUT_MS = 3_000
# How long a poll may overlook that the group rebalances.
LOOK_UP_MS = 250


class GroupReader:
    """One member's view of its partitions."""

    def __init__(
        self,
        client: Client,
        member: GroupMember,
        *,
        start: int = LATEST,
        until_end: bool = False,
        read_committed: bool = False,
    ) -> None:
        """`start` is where a partition begins that the group has never read; EARLIEST or LATEST."""
        self._client = client
        self._member = member
        self._start = start
        self._until_end = until_end
        self._read_committed = read_committed
        self._tail: Tail | None = None
        self._beating: asyncio.Task[None] | None = None
        # The call of `next` that is under way.
        self._reading: asyncio.Task[object] | None = None
        self._passed: dict[TopicPartition, int] = {}
        self._committed_at_s = 0.0

    @property
    def finished(self) -> bool:
        """Whether every partition was read to where it ended when it was assigned; only with `until_end`."""
        return self._until_end and self._tail is not None and not self._tail.positions and not self._must_join()

    def passed(self, place: TopicPartition, offset: int) -> None:
        """Everything before this offset has been dealt with."""
        self._passed[place] = offset

    async def next(self, timeout_ms: int) -> list[Arrived]:
        """What has arrived, as soon as anything has; empty when the time is up.

        The time counts from when it has its partitions: whoever gives up after half a second without a record does not
        want to give up because joining took so long.
        """
        self._reading = asyncio.current_task()
        try:
            return await self._next(timeout_ms)
        finally:
            self._reading = None

    async def _next(self, timeout_ms: int) -> list[Arrived]:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_ms / 1000
        while True:
            if self._must_join() or await self._member.has_outdated_assignment():
                await self._rebalance()
                deadline_s = loop.time() + timeout_ms / 1000
            elif loop.time() >= self._committed_at_s + COMMIT_EVERY_S:
                await self._commit()
                continue
            assert self._tail is not None
            wait_ms = min(LOOK_UP_MS, int((deadline_s - loop.time()) * 1000))
            if wait_ms <= 0 or self.finished:
                return []
            if not self._tail.positions:
                # Nothing to read: a member more than there are partitions. It waits for the next rebalance.
                await asyncio.sleep(wait_ms / 1000)
            elif arrived := await self._tail.next(wait_ms):
                return arrived

    def _must_join(self) -> bool:
        return self._beating is None or self._beating.done()

    async def close(self) -> None:
        """Commit, and leave the group at once; brief when the coordinator does not answer.

        A call of `next` that is still under way ends first: after Ctrl-C it would find itself without heartbeats, and
        join the group again behind the back of the member that has left.
        """
        if (reading := self._reading) is not None:
            reading.cancel()
            await asyncio.wait([reading])
        try:
            await self._stop()
            await self._commit(CLOSE_TIMEOUT_MS)
        finally:
            await self._member.leave(CLOSE_TIMEOUT_MS)

    async def _rebalance(self) -> None:
        await self._stop()
        await self._commit()
        places = await self._member.join()
        self._beating = asyncio.create_task(self._beat())
        standing = await committed_offsets(self._client, self._member.group, places) if places else {}
        new = [place for place in places if place not in standing]
        found = await list_offsets(self._client, dict.fromkeys(new, self._start)) if new else {}
        offsets = {place: standing[place].offset if place in standing else found[place].offset for place in places}
        ends: dict[TopicPartition, int] = {}
        if self._until_end and places:
            at_end = await list_offsets(
                self._client, dict.fromkeys(places, LATEST), read_committed=self._read_committed
            )
            ends = {place: at.offset for place, at in at_end.items()}
        self._tail = Tail(self._client, offsets, read_committed=self._read_committed, reset=self._start, ends=ends)
        # Where a partition begins is a promise to whoever gets it next, also if nothing comes meanwhile.
        self._passed = {place: offsets[place] for place in new}

    async def _stop(self) -> None:
        """End heartbeats and polls; an error that the heartbeats met is raised here."""
        beating, self._beating = self._beating, None
        if self._tail is not None:
            await self._tail.close()
        if beating is None:
            return
        if not beating.done():
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)
        elif (error := beating.exception()) is not None and not (isinstance(error, ClientError) and error.retriable):
            raise error

    async def _beat(self) -> None:
        """Ends when the group wants us to join again."""
        every_s = self._member.session_timeout_ms / HEARTBEATS_PER_SESSION / 1000
        while True:
            if not await self._member.heartbeat():
                return
            await asyncio.sleep(every_s)

    async def _commit(self, timeout_ms: int | None = None) -> None:
        self._committed_at_s = asyncio.get_running_loop().time()
        passed, self._passed = self._passed, {}
        if passed and not await self._member.commit(passed, timeout_ms):
            await self._stop()
