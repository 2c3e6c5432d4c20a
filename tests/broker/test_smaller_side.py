"""A broker that is cut off from most of the others hangs up on clients that ask it for the way."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.smaller_side import ROUND_MS, SENT_AWAY_MS, SmallerSide
from millstream.client.admin.topics import NewTopic, create_topics, list_topics
from millstream.client.errors import ConnectionLost
from millstream.client.produce import Producer
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
TOPIC = "led"


class Now:
    ms = NOW_MS

    def monotonic_ms(self) -> int:
        return self.ms


def a_node(*, in_touch: bool = False, lagging: tuple[int, ...] = (), **heard_ms: int) -> Any:
    """Node 1, which leads a partition for each of its followers (`b2=HEARD_MS`), and when they were heard of."""
    followers = {int(name[1:]): at_ms for name, at_ms in heard_ms.items()}
    leaders = [
        SimpleNamespace(
            isr=(1,) if each in lagging else (1, each),
            followers={each: SimpleNamespace(id=each, heard_ms=at_ms)},
        )
        for each, at_ms in followers.items()
    ]
    return SimpleNamespace(
        node_id=1,
        membership=SimpleNamespace(is_in_touch=in_touch),
        settings=Settings({}),
        ports=SimpleNamespace(clock=Now()),
        partitions=[SimpleNamespace(leader=leader) for leader in (*leaders, None)],
    )


CUT_OFF = a_node(b2=SILENT_MS, b3=SILENT_MS)


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (CUT_OFF, True),
        (a_node(b2=SILENT_MS, b3=HEARD_MS), True),
        (a_node(b2=SILENT_MS, b3=SILENT_MS, in_touch=True), False),
        (a_node(b2=HEARD_MS, b3=HEARD_MS), False),
        # Who was out of sync before is not missed.
        (a_node(b2=HEARD_MS, b3=SILENT_MS, lagging=(3,)), False),
        (a_node(), False),
    ],
)
def test_a_follower_in_sync_must_be_silent_and_every_controller(node: Any, *, expected: bool) -> None:
    assert SmallerSide(node).is_ours is expected


def test_who_still_comes_after_a_while_is_answered_until_the_next_round() -> None:
    side, now = SmallerSide(CUT_OFF), CUT_OFF.ports.clock
    hung_up: list[str] = []

    def asked_by(client_id: str) -> bool:
        context: Any = SimpleNamespace(
            client_id=client_id, connection=SimpleNamespace(peer_host="there", cut_off=hung_up.append)
        )
        return side.sends_away(context)

    assert asked_by("one")
    now.ms += SENT_AWAY_MS - 1
    assert asked_by("one")
    assert asked_by("another")
    now.ms += 1
    assert not asked_by("one")
    assert asked_by("another")
    now.ms += ROUND_MS - SENT_AWAY_MS
    assert asked_by("one")
    assert not asked_by("another")
    assert len(hung_up) == 5


# --- on a cluster

METADATA = MetadataRequest(topics=[], allow_auto_topic_creation=False)
COORDINATOR = FindCoordinatorRequest(key="group", coordinator_keys=["group"])


async def answers(client: Client, at: SimulatedNode, question: object) -> bool:
    try:
        await client.call(question, node=at.id)
    except ConnectionLost:
        return False
    return True


def leads(at: SimulatedNode) -> bool:
    return at.node is not None and any(partition.leader is not None for partition in at.node.partitions)


def follows_others(at: SimulatedNode) -> bool:
    """And was heard of, with that, by whoever it follows."""
    return (
        at.node is not None
        and all(
            partition.follower is not None or all(each.end_offset >= 0 for each in partition.leader.followers.values())
            for partition in at.node.partitions
            if partition.leader is not None or partition.follower is not None
        )
        and len([*at.node.partitions]) >= 6
    )


def is_small(at: SimulatedNode) -> bool:
    assert at.node is not None
    return at.node.smaller_side.is_ours


async def with_a_topic(cluster: SimulatedCluster) -> Client:
    await cluster.start()
    client = cluster.client()
    await create_topics(client, [NewTopic(TOPIC, partitions=6)])
    return client


def run(scenario: Any, **how: Any) -> None:
    for seed in range(5):
        SimulatedCluster(seed, settings=base_settings(3), **how).run(scenario)


def test_clients_are_sent_away_while_a_broker_is_cut_off() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        client = await with_a_topic(cluster)
        at = next(each for each in cluster.nodes.values() if leads(each))
        others = [each for each in cluster.nodes.values() if each is not at]
        cluster.network.block([at.host], cluster.hosts)
        await cluster.until(lambda: is_small(at), what="it notices")
        assert not await answers(client, at, METADATA)
        assert not await answers(client, at, COORDINATOR)
        assert [await answers(client, each, METADATA) for each in others] == [True, True]
        cluster.network.heal()
        await cluster.until(lambda: not is_small(at), what="it is back")
        assert await answers(client, at, METADATA)
        assert await answers(client, at, COORDINATOR)
        await client.close()

    run(scenario, nodes=3)


def test_a_client_that_knows_several_brokers_goes_on_with_another() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await (await with_a_topic(cluster)).close()
        at = next(each for each in cluster.nodes.values() if leads(each))
        cluster.network.block([at.host], cluster.hosts)
        await cluster.until(lambda: is_small(at), what="it notices")
        it_first = sorted(cluster.bootstrap_servers.split(","), key=lambda address: not address.startswith(at.host))
        client = cluster.client(options={"bootstrap.servers": ",".join(it_first)})
        assert TOPIC in [topic.name for topic in await list_topics(client)]
        producer = Producer(client)
        for index in range(6):
            await producer.send(TOPIC, index, [(None, b"value", (), 0)])
        await client.close()

    run(scenario, nodes=3)


def test_the_last_that_lives_answers_in_the_end() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        client = await with_a_topic(cluster)
        last = next(each for each in cluster.nodes.values() if leads(each))
        for at in cluster.nodes.values():
            if at is not last:
                at.kill()
        await cluster.until(lambda: is_small(last), what="it notices")
        assert not await answers(client, last, METADATA)
        await asyncio.sleep(SENT_AWAY_MS / 1000)
        assert await answers(client, last, METADATA)
        await client.close()

    run(scenario, nodes=3)


def test_without_controllers_brokers_that_hear_each_other_show_the_way() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        client = await with_a_topic(cluster)
        controllers = [cluster.nodes[number].host for number in cluster.layout.controllers]
        brokers = list(cluster.brokers.values())
        await cluster.until(lambda: all(follows_others(at) for at in brokers), what="each follows the others")
        cluster.network.block(controllers, [at.host for at in brokers])
        await cluster.until(
            lambda: not any(at.node is not None and at.node.membership.is_in_touch for at in brokers),
            what="no broker is in touch",
        )
        for _ in range(20):
            assert [await answers(client, at, METADATA) for at in brokers] == [True] * len(brokers)
            await asyncio.sleep(1)
        await client.close()

    run(scenario, layout=separate(3))
