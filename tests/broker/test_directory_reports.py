"""A replica whose files have failed is reported until a controller has heard of it."""

from __future__ import annotations

import asyncio
import errno
from types import SimpleNamespace
from typing import Any

from millstream.broker.directory_reports import DirectoryReports
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsResponse
from millstream.protocol.uuid import Uuid
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.layouts import separate
from millstream.testing.simulation import base_settings

TOPIC = "orders"
TOPIC_ID, DIRECTORY_ID = Uuid(b"t" * 16), Uuid(b"d" * 16)
# One that no broker of today has heard of.
NEW_CODE = 9_999


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


class Controller:
    """Refuses the first report with an error that the broker does not know."""

    def __init__(self) -> None:
        self.heard = 0
        node: Any = SimpleNamespace(
            node_id=1, broker_epoch=1, loop=asyncio.get_running_loop(), ask_controller=self._answer
        )
        self.reports = DirectoryReports(node)

    async def _answer(self, *_: object, **__: object) -> AssignReplicasToDirsResponse:
        self.heard += 1
        return AssignReplicasToDirsResponse(error_code=NEW_CODE if self.heard == 1 else 0, directories=[])


def test_a_report_that_is_refused_for_an_unknown_reason_is_made_again() -> None:
    async def scene() -> None:
        controller = Controller()
        controller.reports.add(TOPIC_ID, 0, DIRECTORY_ID)
        telling = controller.reports._telling
        assert telling is not None
        await telling
        assert controller.heard == 2

    asyncio.run(scene())


def test_what_fails_after_the_stop_is_not_reported() -> None:
    async def scene() -> None:
        controller = Controller()
        await controller.reports.stop()
        controller.reports.add(TOPIC_ID, 0, DIRECTORY_ID)
        assert controller.reports._telling is None

    asyncio.run(scene())
