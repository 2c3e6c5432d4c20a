"""Readers of one group on virtual time: one is interrupted at any moment, and the other gets all partitions."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin.described_groups import describe_groups
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.group_member import GroupMember
from millstream.client.group_reader import GroupReader
from millstream.client.offsets import EARLIEST
from millstream.client.produce import produce
from millstream.records.building import encode_batch
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.simulation import base_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from millstream.client.client import Client

GROUP, TOPIC = "readers", "orders"
SETTINGS = {**base_settings(1), "group.initial.rebalance.delay.ms": "0"}


def on_one_node(seed: int, scenario: Callable[[SimulatedCluster, Client], Awaitable[None]]) -> None:
    async def run(cluster: SimulatedCluster) -> None:
        await cluster.start()
        async with cluster.client() as client:
            await scenario(cluster, client)

    SimulatedCluster(seed, nodes=1, settings=SETTINGS).run(run)


async def fill(client: Client) -> None:
    """Three partitions with ten records each."""
    await create_topics(client, [NewTopic(TOPIC, partitions=3, replicas=1)])
    for partition in range(3):
        batch = encode_batch([(None, b"%d" % number, (), 0) for number in range(10)])
        await produce(client, {(TOPIC, partition): batch})


async def until_shared(client: Client, expected: list[int], within_s: float) -> None:
    """Wait until the members own so many partitions each."""
    async with asyncio.timeout(within_s):
        while await shares(client) != expected:  # noqa: ASYNC110  # of a broker that tells no one
            await asyncio.sleep(0.01)


async def shares(client: Client) -> list[int]:
    found = (await describe_groups(client, [GROUP]))[GROUP]
    return [] if isinstance(found, Exception) else sorted(len(member.assignment) for member in found.members)


async def follow(reader: GroupReader) -> None:
    while True:
        for arrived in await reader.next(500):
            reader.passed((arrived.fetched.topic, arrived.fetched.partition), arrived.after)


# What SyncClient does at Ctrl-C: the call under way is cancelled and `close` starts, both without waiting. A signal
# that comes before the call was handed over as a future finds nothing to cancel.
@pytest.mark.parametrize("is_cancelled", [True, False], ids=["cancelled", "left running"])
@pytest.mark.parametrize("seed", range(10))
def test_the_reader_that_stays_gets_all_whenever_the_other_is_interrupted(seed: int, is_cancelled: bool) -> None:
    moment = random.Random(seed)

    async def scenario(cluster: SimulatedCluster, client: Client) -> None:
        await fill(client)
        clients = [cluster.client() for _ in range(2)]
        readers = [GroupReader(each, GroupMember(each, GROUP, [TOPIC]), start=EARLIEST) for each in clients]
        following = [asyncio.create_task(follow(reader)) for reader in readers]
        await until_shared(client, [1, 2], within_s=60)
        await asyncio.sleep(moment.choice([0, 0.01 * moment.random(), 0.3 * moment.random(), 6 * moment.random()]))
        if is_cancelled:
            following[0].cancel()
        await readers[0].close()
        # Two heartbeats: far from the end of a session.
        await until_shared(client, [3], within_s=6)
        assert following[0].done()
        following[1].cancel()
        await readers[1].close()
        await asyncio.gather(*following, return_exceptions=True)
        for each in clients:
            await each.close()

    on_one_node(seed, scenario)


def test_a_topic_that_is_created_later_is_shared_out_when_it_is_there() -> None:
    """The leader gave out nothing, since there was nothing: it has to look again for what it subscribes to."""

    async def scenario(cluster: SimulatedCluster, client: Client) -> None:
        reader = GroupReader(client, GroupMember(client, GROUP, [TOPIC]), start=EARLIEST)
        following = asyncio.create_task(follow(reader))
        await until_shared(client, [0], within_s=60)
        await fill(client)
        await until_shared(client, [3], within_s=60)
        following.cancel()
        await reader.close()

    on_one_node(1, scenario)
