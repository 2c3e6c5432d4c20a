"""Bugs in what counts as on disk, planted into real nodes, each with the order of events that shows it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.metadata_log import MetadataLog
from millstream.broker.replica_fetchers import _Fetcher
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.quorum.events import Started
from millstream.testing.replica_invariants import IN_SYNC_HOLD
from tests.sim.directed import active_controller, elect_preferred, partition_at, play, until_isr, until_led_by, write
from tests.sim.planting import Plant, must_be_found, replaces

if TYPE_CHECKING:
    from millstream.client.client import Client
    from millstream.testing.cluster import SimulatedCluster

SLOW_S = 10.0


async def voter_is_killed_before_its_fsync(cluster: SimulatedCluster, client: Client) -> None:
    """One voter is cut off, the other one is killed between writing a record and syncing it, and comes back."""
    leader = active_controller(cluster)
    assert leader is not None
    killed, cut_off = (node for node in cluster.nodes.values() if node is not leader)
    assert leader.node is not None
    assert killed.node is not None
    controller, follower = leader.node.controller, killed.node.controller
    cluster.network.block([cut_off.host], [leader.host, killed.host])
    killed.ports.workers.work_s_max = SLOW_S
    before = controller.log.end_offset
    creating = asyncio.create_task(create_topics(client, [NewTopic("late", 1, 1)]))
    await cluster.until(
        lambda: before < follower.log.end_offset == controller.log.end_offset > follower.log.log.recovery_point,
        what="a voter has written what it has not synced",
        every_s=0.001,
    )
    killed.kill()
    await killed.restart()
    await cluster.until(lambda: controller.log.high_watermark > before, what="the record is committed")
    await creating


def _slow_down_partitions(cluster: SimulatedCluster, number: int) -> None:
    """Syncs of its partitions take long, those of its metadata don't: it has to hear whom to follow."""
    node = cluster.nodes[number].node
    assert node is not None
    in_thread = node.ports.workers.in_thread

    class Slow:
        async def in_thread(self, call: Any, *arguments: Any) -> Any:
            await asyncio.sleep(SLOW_S)
            return await in_thread(call, *arguments)

    node.durability._workers = Slow()


async def leader_follows_before_its_fsync(cluster: SimulatedCluster, client: Client) -> None:
    """A leader that is slow to sync gives its leadership back, and follows with what it has not synced."""
    cluster.nodes[1].kill()
    await until_led_by(cluster, 2)
    await cluster.nodes[1].restart()
    await write(client, 1)
    await until_isr(cluster, 1, 2, 3)
    _slow_down_partitions(cluster, 2)
    end = partition_at(cluster, 2).log.end_offset
    writing = asyncio.create_task(write(client, 1))
    await cluster.until(
        lambda: all(partition_at(cluster, number).log.recovery_point > end for number in (1, 3)),
        what="the followers have synced what comes next",
        every_s=0.001,
    )
    assert partition_at(cluster, 2).log.recovery_point == end, "the leader was not slow enough"
    await elect_preferred(cluster, client)
    await cluster.until(lambda: partition_at(cluster, 1).log.high_watermark > end, what="it is committed")
    await writing


def _starts_without_a_flush(self: MetadataLog) -> None:
    self.step(Started())


SCENARIOS = {
    "voter": lambda seed: play(seed, voter_is_killed_before_its_fsync, apart=False),
    "leader": lambda seed: play(seed, leader_follows_before_its_fsync, millstream_acks_fsync="true"),
}
PLANTS = [
    (
        replaces(
            "a restarted voter speaks for what it has not synced",
            MetadataLog,
            "start",
            _starts_without_a_flush,
            rule="a majority holds what is committed",
            seeds=1,
        ),
        SCENARIOS["voter"],
    ),
    (
        replaces(
            "a former leader speaks for what it has not synced",
            _Fetcher,
            "_must_sync_first",
            lambda *_: False,
            rule=IN_SYNC_HOLD,
            seeds=1,
        ),
        SCENARIOS["leader"],
    ),
]


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_right_code_stands_it(name: str) -> None:
    SCENARIOS[name](1)


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "run"), PLANTS, ids=lambda each: str(each) if isinstance(each, Plant) else "")
def test_a_planted_bug_is_found(plant: Plant, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    plant.plant(monkeypatch)
    must_be_found(plant, run)
