"""A voter that takes a snapshot follows no less than one that fetches records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.broker.metadata_snapshot import PART
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.metadata.names import METADATA_TOPIC
from millstream.testing.cluster import SimulatedCluster
from millstream.testing.simulated_node import DIRECTORY
from millstream.testing.simulation import base_settings

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.testing.simulated_node import SimulatedNode

SETTINGS = {
    **base_settings(3),
    "metadata.log.max.snapshot.interval.ms": "0",
    "metadata.max.retention.bytes": "1",
    "controller.quorum.fetch.snapshot.max.bytes": "64",
}
PIECE_S = 0.4
METADATA_LOG = f"{DIRECTORY}/{METADATA_TOPIC}-0"


def program(at: SimulatedNode) -> Node:
    assert at.node is not None
    return at.node


def loads_a_snapshot(at: SimulatedNode) -> bool:
    return any(name.endswith(PART) for name in at.disk.list_directory(METADATA_LOG))


async def scenario(cluster: SimulatedCluster) -> None:
    await cluster.start()
    leader = next(at for at in cluster.nodes.values() if program(at).controller.is_active)
    away, other = (at for at in cluster.nodes.values() if at is not leader)
    away.kill()
    client = cluster.client()
    for name in ("one", "two"):
        await create_topics(client, [NewTopic(name, partitions=1, replicas=1)])
        for at in (leader, other):
            await cluster.until(lambda at=at, name=name: name in program(at).image.topics.by_name)
            await program(at).controller.snapshot()
    await client.close()
    log = program(leader).controller.log
    assert log.log.start_offset > 0
    began_in, began_s = log.epoch, cluster.loop.time()

    cluster.network.slow_down(leader.host, away.host, PIECE_S, one_way=True)
    away.boot()
    await cluster.until(lambda: loads_a_snapshot(away), what="it loads the snapshot")
    other.kill()
    await cluster.until(
        lambda: away.node is not None and "two" in away.node.image.topics.by_name, what="it has the snapshot"
    )
    assert cluster.loop.time() - began_s > 2 * log.quorum.timeouts.check_quorum_ms / 1000, "that took long"
    assert log.quorum.leads
    assert log.epoch == began_in


def test_a_leader_goes_on_while_the_only_other_voter_takes_a_snapshot() -> None:
    SimulatedCluster(seed=1, nodes=3, settings=SETTINGS).run(scenario)
