"""`millstream kafka-properties` in a cluster: each node's file names its own roles and all controllers."""

from __future__ import annotations

import pytest

from millstream.broker.kafka_properties import kafka_properties
from millstream.broker.storage_format import StorageLayout
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.layouts import LAYOUTS
from millstream.testing.simulated_node import DIRECTORY


def properties_of(cluster: SimulatedCluster, number: int) -> dict[str, str]:
    text = kafka_properties(cluster.nodes[number].disk, StorageLayout.of([DIRECTORY]))
    return dict(line.split("=", 1) for line in text.splitlines() if not line.startswith("#"))


async def start_and_stop(cluster: SimulatedCluster) -> None:
    await cluster.start()
    for node in cluster.nodes.values():
        controllers = cluster.layout.controllers
        await cluster.until(
            lambda: all(each in node.serving.image.controllers for each in controllers) if node.serving else False,  # noqa: B023
            what="all controllers have registered",
        )
    for number in (*cluster.layout.brokers, *cluster.layout.controllers):
        if cluster.nodes[number].serving is not None:
            await cluster.nodes[number].shut_down()


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_node_of_a_cluster_can_be_taken_over(name: str) -> None:
    cluster = SimulatedCluster(seed=1, layout=LAYOUTS[name](3))
    cluster.run(start_and_stop)
    addresses = {number: f"node-{number}:9093" for number in cluster.layout.controllers}
    for number in cluster.nodes:
        found = properties_of(cluster, number)
        assert found["node.id"] == str(number)
        assert found["process.roles"] == cluster.layout.roles_of(number)
        assert found["controller.listener.names"] == "CONTROLLER"
        if cluster.layout.is_dynamic:
            assert sorted(found["controller.quorum.bootstrap.servers"].split(",")) == sorted(addresses.values())
        else:
            voters = [f"{controller}@{address}" for controller, address in addresses.items()]
            assert found["controller.quorum.voters"] == ",".join(voters)
        assert ("CONTROLLER://" in found["listeners"]) == (number in cluster.layout.controllers)
        assert ("PLAINTEXT://" in found["listeners"]) == (number in cluster.layout.brokers)
