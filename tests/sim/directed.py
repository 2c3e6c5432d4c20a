"""What directed scenarios on real nodes share: a cluster with one partition of three replicas, watched by all rules.

Controllers are apart: all brokers may be down and there is still one that decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.client import CONTROLLER
from millstream.client.produce import Producer
from millstream.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.layouts import combined, separate
from millstream.testing.quorum_invariants import QuorumInvariants
from millstream.testing.replica_invariants import ReplicaInvariants
from millstream.testing.simulation import base_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from millstream.broker.partition import Partition
    from millstream.client.client import Client
    from millstream.metadata.image import MetadataImage, PartitionImage
    from millstream.testing.simulated_node import SimulatedNode

    Scenario = Callable[[SimulatedCluster, Client], Coroutine[Any, Any, None]]

SETTINGS = {
    **base_settings(3),
    "min.insync.replicas": "1",
    "replica.lag.time.max.ms": "2000",
    "auto.leader.rebalance.enable": "false",
}
PLACE = ("directed", 0)


def play(
    seed: int, scenario: Scenario, *, apart: bool = True, configs: dict[str, str] | None = None, **settings: str
) -> None:
    """One run of a scenario. `configs` are the topic's, `settings` all nodes', with _ for a dot."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    cluster = SimulatedCluster(seed, layout=(separate if apart else combined)(3), settings={**SETTINGS, **given})
    cluster.checkers += [ReplicaInvariants().look, QuorumInvariants().look]

    async def whole(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client("writer")
        await create_topics(client, [NewTopic(PLACE[0], assignments={0: (1, 2, 3)}, configs=configs or {})])
        await cluster.until(lambda: standing(cluster) is not None)
        await scenario(cluster, client)
        await client.close()

    cluster.run(whole)


def image(cluster: SimulatedCluster) -> MetadataImage:
    images = [node.serving.image for node in cluster.nodes.values() if node.serving is not None]
    return max(images, key=lambda each: each.offset)


def standing(cluster: SimulatedCluster) -> PartitionImage | None:
    topic = image(cluster).topics.by_name.get(PLACE[0])
    return None if topic is None else topic.partitions[0]


async def until_isr(cluster: SimulatedCluster, *members: int) -> PartitionImage:
    await cluster.until(
        lambda: (now := standing(cluster)) is not None and sorted(now.isr) == sorted(members),
        what=f"the ISR is {members}",
    )
    now = standing(cluster)
    assert now is not None
    return now


async def write(client: Client, count: int) -> None:
    producer = Producer(client)
    for number in range(count):
        await producer.send(*PLACE, [(b"key", b"value %d" % number, [], 0)])


async def loses_touch(cluster: SimulatedCluster, client: Client) -> PartitionImage:
    """Node 3 hears nothing of the leader, which goes on without it; the controllers hear of both."""
    cluster.network.block(["node-3"], ["node-1", "node-2"])
    await write(client, 5)
    return await until_isr(cluster, 1, 2)


def end_at(cluster: SimulatedCluster, number: int) -> int:
    """How much of the partition a broker holds."""
    serving = cluster.nodes[number].serving
    partition = None if serving is None else serving.partitions.get(*PLACE)
    return -1 if partition is None else partition.log.end_offset


async def until_led_by(cluster: SimulatedCluster, number: int) -> None:
    def leads() -> bool:
        serving = cluster.nodes[number].serving
        partition = None if serving is None else serving.partitions.get(*PLACE)
        return partition is not None and partition.leader is not None

    await cluster.until(leads, what=f"{number} leads", every_s=0.01)


def partition_at(cluster: SimulatedCluster, number: int) -> Partition:
    node = cluster.nodes[number].node
    assert node is not None
    found = node.partitions.get(*PLACE)
    assert found is not None
    return found


def active_controller(cluster: SimulatedCluster) -> SimulatedNode | None:
    for node in cluster.nodes.values():
        if node.serving is not None and node.serving.controller.is_active:
            return node
    return None


async def elect_preferred(cluster: SimulatedCluster, client: Client) -> None:
    """The first of the replicas leads again."""
    request = ElectLeadersRequest(
        election_type=0, topic_partitions=[TopicPartitions(topic=PLACE[0], partitions=[0])], timeout_ms=5_000
    )
    await client.call(request, node=CONTROLLER)
    await until_led_by(cluster, 1)
