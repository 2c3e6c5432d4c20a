"""A replica whose files have failed is reported until a controller has heard of it."""

from __future__ import annotations

import asyncio
import errno

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.layouts import separate
from millstream.testing.simulation import base_settings

TOPIC = "orders"


async def scenario(cluster: SimulatedCluster) -> None:
    await cluster.start()
    client = cluster.client()
    await create_topics(client, [NewTopic(TOPIC, assignments={0: (1, 2, 3)})])
    node = cluster.nodes[1].node
    assert node is not None
    hosted = node.partitions
    await cluster.until(lambda: (found := hosted.get(TOPIC, 0)) is not None and found.leader is not None)
    controllers = [cluster.nodes[number] for number in cluster.layout.controllers]
    for controller in controllers:
        controller.kill()
    partition = hosted.get(TOPIC, 0)
    assert partition is not None
    partition.log.mark_offline(OSError(errno.EIO, "the disk is gone"))
    partition.went_offline()
    await asyncio.sleep(90)
    for controller in controllers:
        await controller.restart()
    other = cluster.nodes[2].node
    assert other is not None
    await cluster.until(
        lambda: other.image.topics.by_name[TOPIC].partitions[0].leader in (2, 3), what="another replica leads"
    )
    assert not other.image.brokers[1].fenced
    # One that nobody will ever hear does not hold up the stop.
    for controller in controllers:
        controller.kill()
    partition.log.failure = None
    hosted._went_offline(partition)
    await cluster.nodes[1].shut_down(within_s=20)
    await client.close()


def test_a_report_outlives_the_absence_of_all_controllers() -> None:
    settings = base_settings(3) | {"auto.leader.rebalance.enable": "false"}
    SimulatedCluster(1, layout=separate(3), settings=settings).run(scenario)
