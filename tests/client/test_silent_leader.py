"""A leader that hangs: its connections stay open and nothing comes back, while the cluster chooses another."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.client import CoordinatorKind, CoordinatorOf, LeaderOf
from millstream.client.errors import ClientError, ConnectionLost, TimedOut
from millstream.client.fetch import fetch
from millstream.client.in_order import IN_FLIGHT_MAX, InOrder
from millstream.client.produce import ALL_IN_SYNC, init_producer_id, produce
from millstream.client.reading import batches_from
from millstream.client.transactions import Transaction, add_partitions, adds_partitions_implicitly, end_transaction
from millstream.records.building import encode_batch
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.simulation import base_settings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from millstream.client.client import Client
    from millstream.client.produce import ProducerId
    from millstream.testing.simulated_node import SimulatedNode

PLACE = ("silent", 0)
# What the client does by itself; simulated clients are less patient unless told.
AS_BY_DEFAULT = {"request.timeout.ms": "30000", "api.timeout.ms": "60000", "delivery.timeout.ms": "120000"}


def with_a_leader(
    scenario: Callable[[SimulatedCluster, Client], Awaitable[None]], options: dict[str, str] | None = None
) -> None:
    async def run(cluster: SimulatedCluster) -> None:
        await cluster.start()
        options_of_this = {**AS_BY_DEFAULT, **(options or {})}
        options_of_this["socket.timeout.ms"] = options_of_this.pop("request.timeout.ms")
        client = cluster.client(options=options_of_this)
        await create_topics(client, [NewTopic(PLACE[0], partitions=1, replicas=3)])
        await scenario(cluster, client)
        await client.close()

    SimulatedCluster(5, nodes=3, settings=base_settings(3)).run(run)


def numbered(producer: ProducerId, number: int) -> dict[tuple[str, int], bytearray]:
    batch = encode_batch(
        [(None, b"%d" % number, (), 0)], producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=number
    )
    return {PLACE: batch}


async def stop_leader(cluster: SimulatedCluster, client: Client) -> SimulatedNode:
    """SIGSTOP: its kernel still takes connections and bytes, and nobody answers them."""
    leader = cluster.nodes[await client.resolve(LeaderOf(*PLACE))]
    leader.pause()
    return leader


async def cut_off_leader(cluster: SimulatedCluster, client: Client) -> SimulatedNode:
    """Nothing gets to it or away from it, not even the end of a connection."""
    leader = cluster.nodes[await client.resolve(LeaderOf(*PLACE))]
    cluster.network.block(leader.host, [*cluster.hosts, *cluster.client_hosts])
    return leader


def back(cluster: SimulatedCluster, leader: SimulatedNode) -> None:
    leader.go_on()
    cluster.network.heal()


async def stored(client: Client) -> list[bytes | None]:
    found: list[bytes | None] = []
    while True:
        (fetched,) = await fetch(client, {PLACE: len(found)})
        records = [record.value for batch in batches_from(fetched, len(found)) for record in batch.records]
        if not records:
            return found
        found += records


@pytest.mark.parametrize("silence", [stop_leader, cut_off_leader])
@pytest.mark.parametrize(
    "back_after_s", [None, 3, 29.9, 33], ids=["stays away", "soon back", "back then", "back later"]
)
def test_writes_follow_to_the_next_leader_each_once_and_in_order(
    silence: Callable[[SimulatedCluster, Client], Awaitable[SimulatedNode]], back_after_s: float | None
) -> None:
    async def scenario(cluster: SimulatedCluster, client: Client) -> None:
        producer = await init_producer_id(client)
        in_order = InOrder(ALL_IN_SYNC)
        await in_order.send(client, numbered(producer, 0))
        leader = await silence(cluster, client)
        if back_after_s is not None:
            cluster.loop.call_later(back_after_s, back, cluster, leader)
        began_s = cluster.loop.time()
        under_way = [in_order.send(client, numbered(producer, number)) for number in range(1, IN_FLIGHT_MAX + 1)]
        await asyncio.gather(*under_way)
        assert cluster.loop.time() - began_s < 60
        await in_order.send(client, numbered(producer, IN_FLIGHT_MAX + 1))
        back(cluster, leader)
        assert await stored(client) == [b"%d" % number for number in range(IN_FLIGHT_MAX + 2)]

    with_a_leader(scenario)


@pytest.mark.parametrize(
    ("options", "about_s"),
    [
        ({}, 120),
        ({"delivery.timeout.ms": "45000", "request.timeout.ms": "10000"}, 45),
        ({"delivery.timeout.ms": "7000"}, 7),
    ],
    ids=str,
)
def test_delivery_timeout_ms_is_when_a_write_is_given_up(options: dict[str, str], about_s: int) -> None:
    async def scenario(cluster: SimulatedCluster, client: Client) -> None:
        producer = await init_producer_id(client)
        in_order = InOrder(ALL_IN_SYNC)
        await in_order.send(client, numbered(producer, 0))
        # Nobody can be chosen in its place.
        cluster.network.block(cluster.hosts, [*cluster.hosts, *cluster.client_hosts])
        for send in (in_order.send(client, numbered(producer, 1)), produce(client, numbered(producer, 1))):
            began_s = cluster.loop.time()
            with pytest.raises(ClientError):
                await send
            request_s = int(client.options.request_timeout_ms) / 1000
            assert about_s - 2 < cluster.loop.time() - began_s < about_s + request_s
        cluster.network.heal()

    with_a_leader(scenario, options)


def test_a_transaction_follows_to_its_next_coordinator() -> None:
    async def scenario(cluster: SimulatedCluster, client: Client) -> None:
        producer = await init_producer_id(client, transactional_id="id")
        transaction = Transaction("id", producer, await adds_partitions_implicitly(client))
        coordinator = cluster.nodes[await client.resolve(CoordinatorOf("id", CoordinatorKind.TRANSACTION))]
        coordinator.pause()
        await add_partitions(client, transaction, [PLACE])
        coordinator.go_on()
        coordinator = cluster.nodes[await client.resolve(CoordinatorOf("id", CoordinatorKind.TRANSACTION))]
        await cluster.until(lambda: len(cluster.serving) == len(cluster.nodes))
        coordinator.pause()
        await end_transaction(client, transaction, commit=True)
        coordinator.go_on()

    with_a_leader(scenario)


async def _unnumbered(client: Client, batch: dict[tuple[str, int], bytearray]) -> object:
    return await produce(client, batch, acks=1)


async def _unnumbered_in_order(client: Client, batch: dict[tuple[str, int], bytearray]) -> object:
    return await InOrder(1).send(client, batch)


@pytest.mark.parametrize("send", [_unnumbered, _unnumbered_in_order])
def test_without_a_number_a_batch_that_may_be_there_is_not_sent_again(send: Callable[..., Awaitable[object]]) -> None:
    async def scenario(cluster: SimulatedCluster, client: Client) -> None:
        batch = {PLACE: encode_batch([(None, b"once", (), 0)])}
        await send(client, batch)
        leader = await stop_leader(cluster, client)
        with pytest.raises(ConnectionLost, match=r"did not answer Produce within 30000 ms; whether .* is unknown"):
            await send(client, batch)
        back(cluster, leader)

    with_a_leader(scenario)


def test_other_calls_say_at_once_that_nobody_answers() -> None:
    async def scenario(cluster: SimulatedCluster, client: Client) -> None:
        await client.metadata.refresh_cluster()
        cluster.network.block(cluster.hosts, cluster.client_hosts)
        began_s = cluster.loop.time()
        with pytest.raises(TimedOut, match="Metadata within 30000 ms"):
            await client.retrying(client.metadata.all_topics)
        assert cluster.loop.time() - began_s < 31
        cluster.network.heal()

    with_a_leader(scenario)
