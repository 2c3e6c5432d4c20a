"""A broker that is cut off from most of the others hangs up on clients that ask it for the way."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.smaller_side import is_on_smaller_side
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import ConnectionLost
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest
from millstream.protocol.messages.metadata_api import MetadataRequest
from millstream.settings.effective import Settings
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.layouts import separate
from millstream.testing.simulation import base_settings

if TYPE_CHECKING:
    from millstream.client.client import Client
    from millstream.testing.simulated_node import SimulatedNode

NOW_MS = 100_000
HEARD_MS, SILENT_MS = NOW_MS - 500, NOW_MS - 60_000


def a_node(*, in_touch: bool = False, fenced: tuple[int, ...] = (), **heard_ms: int) -> Any:
    """Leads a partition for each of its followers (`b2=HEARD_MS`), and when they were heard of."""
    followers = {int(name[1:]): at_ms for name, at_ms in heard_ms.items()}
    leaders = [
        SimpleNamespace(leader=SimpleNamespace(followers={each: SimpleNamespace(id=each, heard_ms=at_ms)}))
        for each, at_ms in followers.items()
    ]
    return SimpleNamespace(
        membership=SimpleNamespace(is_in_touch=in_touch),
        settings=Settings({}),
        ports=SimpleNamespace(clock=SimpleNamespace(monotonic_ms=lambda: NOW_MS)),
        image=SimpleNamespace(brokers={each: SimpleNamespace(active=each not in fenced) for each in followers}),
        partitions=[*leaders, SimpleNamespace(leader=None)],
    )


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (a_node(b2=SILENT_MS, b3=SILENT_MS), True),
        (a_node(b2=SILENT_MS, b3=SILENT_MS, b4=HEARD_MS), True),
        (a_node(b2=SILENT_MS, b3=SILENT_MS, in_touch=True), False),
        (a_node(b2=SILENT_MS, b3=HEARD_MS), False),
        (a_node(b2=SILENT_MS, b3=SILENT_MS, b4=HEARD_MS, b5=HEARD_MS), False),
        # One may be dead; of two it cannot be said who is cut off.
        (a_node(b2=SILENT_MS), False),
        # Who was known to be gone before is not missed.
        (a_node(b2=SILENT_MS, b3=SILENT_MS, fenced=(3,)), False),
        (a_node(), False),
    ],
)
def test_most_of_the_followers_must_be_silent_and_every_controller(node: Any, *, expected: bool) -> None:
    assert is_on_smaller_side(node) is expected


METADATA = MetadataRequest(topics=[], allow_auto_topic_creation=False)
COORDINATOR = FindCoordinatorRequest(key="group", coordinator_keys=["group"])


async def answers(client: Client, at: SimulatedNode, question: object) -> bool:
    try:
        await client.call(question, node=at.id)
    except ConnectionLost:
        return False
    return True


def leads(at: SimulatedNode) -> bool:
    assert at.node is not None
    return any(partition.leader is not None for partition in at.node.partitions)


def takes_itself_for_cut_off(at: SimulatedNode) -> bool:
    assert at.node is not None
    return is_on_smaller_side(at.node)


def test_clients_are_sent_away_for_as_long_as_a_broker_is_cut_off() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic("led", partitions=6)])
        at = next(each for each in cluster.nodes.values() if leads(each))
        others = [each for each in cluster.nodes.values() if each is not at]
        cluster.network.block([at.host], cluster.hosts)
        await cluster.until(lambda: takes_itself_for_cut_off(at), what="it notices")
        assert not await answers(client, at, METADATA)
        assert not await answers(client, at, COORDINATOR)
        assert [await answers(client, each, METADATA) for each in others] == [True, True]
        cluster.network.heal()
        await cluster.until(lambda: not takes_itself_for_cut_off(at), what="it is back")
        assert await answers(client, at, METADATA)
        assert await answers(client, at, COORDINATOR)
        await client.close()

    for seed in range(5):
        SimulatedCluster(seed, nodes=3, settings=base_settings(3)).run(scenario)


def test_without_controllers_brokers_that_hear_each_other_show_the_way() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic("led", partitions=6)])
        controllers = [cluster.nodes[number].host for number in cluster.layout.controllers]
        brokers = list(cluster.brokers.values())
        cluster.network.block(controllers, [at.host for at in brokers])
        await cluster.until(
            lambda: not any(at.node is not None and at.node.membership.is_in_touch for at in brokers),
            what="no broker is in touch",
        )
        for _ in range(20):
            assert [await answers(client, at, METADATA) for at in brokers] == [True] * len(brokers)
            await asyncio.sleep(1)
        await client.close()

    for seed in range(5):
        SimulatedCluster(seed, layout=separate(3), settings=base_settings(3)).run(scenario)
