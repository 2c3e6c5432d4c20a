"""Consumers: one that reads everything, and members of a group."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from millstream.client.errors import ClientError, Refusal
from millstream.client.fetch import fetch
from millstream.client.group_member import GroupMember
from millstream.client.groups import committed_offsets
from millstream.client.offsets import LATEST, list_offsets
from millstream.client.reading import batches_from, next_offset
from millstream.protocol.errors import ErrorCode
from millstream.testing.history import Committed, Owned, Polled
from millstream.testing.violations import Violation
from millstream.testing.workers import Worker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.client.client import Client
    from millstream.records.batch import Record
    from millstream.testing.cluster import SimulatedCluster
    from millstream.testing.history import History, Place

POLL_MS = 200
TOMBSTONE = "tombstone"
"""The header that carries the value of a `Sent` that deletes."""


class Reader(Worker):
    """Reads all partitions from their beginning on; asks now and then where they end."""

    def __init__(
        self, cluster: SimulatedCluster, name: str, history: History, places: Sequence[Place], *, committed_only: bool
    ) -> None:
        super().__init__(cluster, name, history)
        self._places = places
        self._positions: dict[Place, int] = {}
        self._committed_only = committed_only

    async def step(self) -> None:
        place = self.random.choice(self._places)
        if self.random.random() < 0.1:
            found = (await list_offsets(self.client, {place: LATEST}, timeout_ms=3_000))[place]
            if found.leader_epoch >= self.history.newest_epochs.get(place, -1):
                self.history.newest_epochs[place] = found.leader_epoch
                self.history.ends.append((place, found.offset))
            return
        fresh = frozenset() if place in self._positions else frozenset({place})
        position = self._positions.setdefault(place, 0)
        try:
            records, self._positions[place] = await read_once(
                self.client, place, position, committed_only=self._committed_only
            )
        except Refusal as refusal:
            if refusal.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                what = f"{self.name} had read {place} up to {position}, which is beyond its end now"
                self.cluster.violations.append(Violation("what was read stays", what))
            raise
        if records:
            self.history.polled.append(
                Polled(
                    self.name,
                    tuple((place, offset, value) for offset, value in records),
                    fresh=fresh,
                    committed_only=self._committed_only,
                )
            )
        elif fresh:
            del self._positions[place]


async def read_once(
    client: Client, place: Place, position: int, *, committed_only: bool
) -> tuple[list[tuple[int, str]], int]:
    """(offset, value) of what one poll brings, and where to read on."""
    (fetched,) = await fetch(
        client, {place: position}, max_wait_ms=POLL_MS, read_committed=committed_only, timeout_ms=3_000
    )
    records = [
        (record.offset, value_of(record))
        for batch in batches_from(fetched, position, read_committed=committed_only)
        for record in batch.records
    ]
    return records, next_offset(fetched, position)


def value_of(record: Record) -> str:
    """What the history knows a record by. A tombstone has no value: its header says what stands for it."""
    if record.value is not None:
        return bytes(record.value).decode()
    return next((bytes(value or b"").decode() for name, value in record.headers if name == TOMBSTONE), "")


class GroupWorker(Worker):
    """A member of a classic group: joins, reads on from what the group committed, commits, and comes back."""

    def __init__(
        self, cluster: SimulatedCluster, name: str, history: History, *, group: str, topics: Sequence[str]
    ) -> None:
        super().__init__(cluster, name, history)
        self._member = GroupMember(self.client, group, topics, session_timeout_ms=10_000, rebalance_timeout_ms=15_000)
        self._positions: dict[Place, int] = {}
        self._fresh: dict[Place, None] = {}
        self._joined = False

    async def step(self) -> None:
        if not self._joined:
            await self._join()
        if not await self._member.heartbeat():
            self._joined = False
            return
        if not self._positions:
            return
        place = self.random.choice(list(self._positions))
        records, position = await read_once(self.client, place, self._positions[place], committed_only=True)
        if not records:
            self._positions[place] = position
            return
        fresh = frozenset({place}) if place in self._fresh else frozenset()
        self._fresh.pop(place, None)
        self.history.polled.append(
            Polled(self.name, tuple((place, offset, value) for offset, value in records), fresh=fresh)
        )
        self._positions[place] = position
        try:
            if await self._member.commit({place: position}, timeout_ms=5_000):
                self.history.committed.append(Committed(self._member.group, place, position))
            else:
                self._joined = False
        except ClientError:
            # Nobody knows whether it counts: the place is read from what the group says.
            self._joined = False
            raise

    async def _join(self) -> None:
        places = await self._member.join()
        member, generation = self._member._member_id, self._member._generation
        self.history.owned += [Owned(self._member.group, generation, place, member) for place in places]
        standing = await committed_offsets(self.client, self._member.group, places) if places else {}
        self._positions = {place: standing[place].offset if place in standing else 0 for place in places}
        self._fresh = dict.fromkeys(places)
        self._joined = True

    async def finish(self) -> None:
        with suppress(ClientError):
            await self._member.leave(timeout_ms=5_000)
