"""What the controllers' files say where the metadata say nothing, and what a new cluster begins with."""

from __future__ import annotations

import asyncio

import pytest
from tests.sim.directed import standing

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.produce import Producer
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.layouts import separate
from millstream.testing.simulation import base_settings

PLACE = ("directed", 0)


def test_a_new_cluster_has_the_min_isr_of_the_controllers_files() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        for at in cluster.serving:
            assert at.node is not None
            assert at.node.image.config(4, "") == {"min.insync.replicas": "2"}
            assert at.node.image.features["eligible.leader.replicas.version"] == 1

    SimulatedCluster(seed=1, nodes=3, settings=base_settings(3)).run(scenario)


@pytest.mark.parametrize("allowed", [True, False])
def test_the_controllers_files_say_whether_records_may_be_lost_for_a_leader(allowed: bool) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        client = cluster.client()
        await create_topics(client, [NewTopic(PLACE[0], assignments={0: (1, 2)})])
        await cluster.until(lambda: (now := standing(cluster)) is not None and now.isr == (1, 2))
        cluster.nodes[2].kill()
        await cluster.until(lambda: (now := standing(cluster)) is not None and now.isr == (1,))
        await Producer(client).send(*PLACE, [(b"key", b"what 2 lacks", [], 0)])
        cluster.nodes[1].kill()
        await cluster.until(lambda: (now := standing(cluster)) is not None and now.leader == -1)
        await cluster.nodes[2].restart()
        await asyncio.sleep(10)
        now = standing(cluster)
        assert now is not None
        assert now.leader == (2 if allowed else -1)
        await client.close()

    settings = {**base_settings(2), "unclean.leader.election.enable": str(allowed).lower()}
    SimulatedCluster(seed=1, layout=separate(2), settings=settings).run(scenario)
