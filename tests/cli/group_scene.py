"""Groups of every kind on one broker, for commands to look at."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from millstream.client.admin import raise_first
from millstream.client.admin.described_groups import describe_groups
from millstream.client.client import CoordinatorOf
from millstream.client.errors import refuse
from millstream.client.group_member import GroupMember
from millstream.client.group_reader import GroupReader
from millstream.client.offsets import EARLIEST
from millstream.client.sync import SyncClient
from millstream.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.client.client import Client
    from millstream.protocol.messages.consumer_group_heartbeat import TopicPartitions as OwnedPartitions

LEAVES = -1
# Members that make up their own ids (KIP-1082) need version 1.
FIRST_VERSION = 1


@contextmanager
def classic_members(servers: str, group: str, topics: list[str], count: int) -> Iterator[None]:
    """So many members, each with a client of its own, all of them settled in one generation."""
    clients = [SyncClient({"bootstrap.servers": servers, "client.id": f"member-{number}"}) for number in range(count)]
    readers: list[GroupReader] = []
    try:
        for client in clients:
            readers.append(client.run(_open, group, topics))
            _settle(clients, readers)
        yield
    finally:
        for client, reader in zip(clients, readers, strict=False):
            client.run(_close, reader)
        for client in clients:
            client.close()


def _settle(clients: list[SyncClient], readers: list[GroupReader]) -> None:
    """Poll all of them at once, since a rebalance waits for all, until each has heard of the newest."""
    for _ in range(3):
        for future in [client.start(_next, reader) for client, reader in zip(clients, readers, strict=False)]:
            future.result(timeout=60)


async def _open(client: Client, group: str, topics: list[str]) -> GroupReader:
    member = GroupMember(client, group, topics, session_timeout_ms=10_000)
    return GroupReader(client, member, start=EARLIEST)


async def _next(_: Client, reader: GroupReader) -> None:
    await reader.next(1_000)


async def _close(_: Client, reader: GroupReader) -> None:
    await reader.close()


class NewMember:
    """A member of the new protocol that owns what it is given as soon as it hears of it."""

    def __init__(self, group: str, name: str, topics: list[str]) -> None:
        self._group = group
        self._name = name
        self._topics = topics
        self._epoch = 0
        self._owned: list[OwnedPartitions] = []

    async def heartbeat(self, client: Client) -> None:
        joining = self._epoch == 0

        async def attempt() -> ConsumerGroupHeartbeatResponse:
            response: ConsumerGroupHeartbeatResponse = await client.call(
                ConsumerGroupHeartbeatRequest(
                    group_id=self._group,
                    member_id=self._name,
                    member_epoch=self._epoch,
                    rebalance_timeout_ms=10_000 if joining else -1,
                    subscribed_topic_names=self._topics if joining else None,
                    topic_partitions=None if self._epoch == LEAVES else self._owned,
                ),
                node=CoordinatorOf(self._group),
                at_least=FIRST_VERSION,
            )
            refuse(response.error_code, response.error_message)
            return response

        response = await client.retrying(attempt)
        self._epoch = response.member_epoch
        if response.assignment is not None:
            self._owned = response.assignment.topic_partitions

    async def leave(self, client: Client) -> None:
        self._epoch = LEAVES
        await self.heartbeat(client)


@contextmanager
def new_members(client: SyncClient, group: str, topics: list[str], names: list[str]) -> Iterator[None]:
    """Members of the new protocol, settled, and alive however long somebody looks at them."""
    members = [NewMember(group, name, topics) for name in names]
    enough = threading.Event()

    def settled() -> bool:
        for member in members:
            client.run(_beat, member)
        found = raise_first(client.run(describe_groups, [group]))[group]
        return len(found.members) == len(names) and found.state == "Stable"

    try:
        # Assignments come with a delay, and what one member gives up another can take only then.
        wait_until(settled, f"the members of {group} to own their partitions", within_s=120, every_s=0.1)
        beating = client.start(_keep_beating, members, enough)
        try:
            yield
        finally:
            enough.set()
            beating.result(timeout=60)
    finally:
        for member in members:
            client.run(_leave, member)


async def _beat(client: Client, member: NewMember) -> None:
    await member.heartbeat(client)


async def _keep_beating(client: Client, members: list[NewMember], enough: threading.Event) -> None:
    """Tools of Java's take seconds each, and a session lasts 45 of them."""
    while not enough.is_set():
        for member in members:
            await member.heartbeat(client)
        await asyncio.sleep(1)


async def _leave(client: Client, member: NewMember) -> None:
    await member.leave(client)
