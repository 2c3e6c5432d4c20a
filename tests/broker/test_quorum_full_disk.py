"""An active controller whose disk is full hands over: alone it could only refuse, but it is not alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import ClientError
from millstream.testing.cluster import CLIENT_PORT, SimulatedCluster
from millstream.testing.quorum_invariants import QuorumInvariants

if TYPE_CHECKING:
    from millstream.testing.simulated_node import SimulatedNode

SETTINGS = {"metadata.log.max.snapshot.interval.ms": "0", "offsets.topic.num.partitions": "1"}


def active(cluster: SimulatedCluster) -> SimulatedNode | None:
    leading = [at for at in cluster.serving if at.node is not None and at.node.controller.is_active]
    return max(leading, key=lambda at: at.node.controller.log.epoch if at.node else -1, default=None)


async def created(cluster: SimulatedCluster, name: str, *, through: SimulatedNode) -> None:
    """Create a topic, however often it has to be tried."""
    deadline_s = cluster.loop.time() + 120
    while cluster.loop.time() < deadline_s:
        client = cluster.client(options={"bootstrap.servers": f"{through.host}:{CLIENT_PORT}"})
        try:
            await create_topics(client, [NewTopic(name, partitions=1, replicas=1)])
        except ClientError:
            continue
        finally:
            await client.close()
        if any(at.node and name in at.node.image.topics.by_name for at in cluster.serving):
            return
    raise AssertionError(f"{name} could not be created")


def test_another_controller_takes_over_from_one_whose_disk_is_full() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        first = active(cluster)
        assert first is not None
        other = next(node for node in cluster.nodes.values() if node is not first)
        await created(cluster, "before", through=first)
        first.disk.fill_up()
        # Whoever has a topic made through it lets it find out that it can write nothing.
        client = cluster.client(options={"bootstrap.servers": f"{first.host}:{CLIENT_PORT}"})
        (refusal,) = (await create_topics(client, [NewTopic("refused", partitions=1, replicas=1)])).values()
        assert "KAFKA_STORAGE_ERROR" in str(refusal)
        await cluster.until(lambda: active(cluster) not in (None, first), what="another controller is active")
        await created(cluster, "while-it-is-full", through=other)
        first.disk.make_room()
        await cluster.until(
            lambda: first.node is not None and "while-it-is-full" in first.node.image.topics.by_name,
            what="the one that was full has caught up",
        )
        await client.close()

    for seed in range(3):
        cluster = SimulatedCluster(seed, nodes=3, settings=SETTINGS)
        cluster.checkers.append(QuorumInvariants().look)
        cluster.run(scenario)


def test_a_node_whose_disk_stays_full_ends_instead_of_telling_what_was_once_true() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        full = next(at for at in cluster.nodes.values() if at is not active(cluster))
        node = full.node
        assert node is not None
        full.disk.fill_up()
        other = active(cluster)
        assert other is not None
        await created(cluster, "while-it-is-full", through=other)
        await cluster.until(node.failed.done, what="it gives up")
        full.disk.make_room()
        full.kill()
        await full.restart()
        assert full.node is not None
        assert "while-it-is-full" in full.node.image.topics.by_name

    SimulatedCluster(seed=1, nodes=3, settings=SETTINGS).run(scenario)
