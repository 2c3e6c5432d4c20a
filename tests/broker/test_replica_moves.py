"""Moving replicas: new ones catch up, as fast as they are allowed to; and elections that lose records where allowed."""

from __future__ import annotations

import errno

import pytest
from tests.broker.replica_scene import TOPIC, Scene, play

from millstream.client.admin.configs import Change, Resource, ResourceKind, alter_configs
from millstream.client.admin.partitions import Election, alter_reassignments, elect_leaders
from millstream.metadata.image import NO_LEADER
from millstream.protocol.errors import ErrorCode

RATE = 20_000
VALUE = "x" * 1_000
BATCHES = 100


async def fill(scene: Scene) -> int:
    """About a hundred kilobytes; how many exactly."""
    for _ in range(BATCHES // 10):
        await scene.wrote(1, *(VALUE for _ in range(10)))
    return scene.partition(1).log.size_bytes


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_throttled_move_takes_as_long_as_its_rate_says(side: str) -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2], configs={f"{side}.replication.throttled.replicas": "*"})
        size = await fill(scene)
        client = scene.cluster.client()
        rate = Change(f"{side}.replication.throttled.rate", str(RATE))
        limited = "1" if side == "leader" else "3"
        await alter_configs(client, {Resource(ResourceKind.BROKER, limited): [rate]})
        began = scene.cluster.loop.time()
        await alter_reassignments(client, {(TOPIC, 0): [1, 2, 3]})
        await scene.until(lambda: scene.hosts(3), "the move has begun")
        await scene.in_sync(1, 2, 3, within_s=120)
        took_s = scene.cluster.loop.time() - began
        # One second's worth, and one fetch, may come at once.
        assert took_s > (size - 2 * RATE) / RATE - 2
        await scene.same_everywhere(1, 2, 3)
        await client.close()

    # A fetch that brings everything at once could not be throttled.
    play(scenario, settings={"replica.fetch.max.bytes": "8000", "replica.fetch.response.max.bytes": "8000"})


def test_all_replicas_that_a_leader_fills_share_its_limit_and_take_turns() -> None:
    """As Kafka's tool sets it: the topic names the replicas that send, `partition:leader`."""

    async def scenario(scene: Scene) -> None:
        await scene.create([1], configs={"leader.replication.throttled.replicas": "0:1"})
        size = await fill(scene)
        client = scene.cluster.client()
        rate = Change("leader.replication.throttled.rate", str(RATE))
        await alter_configs(client, {Resource(ResourceKind.BROKER, "1"): [rate]})
        began = scene.cluster.loop.time()
        await alter_reassignments(client, {(TOPIC, 0): [1, 2, 3]})
        await scene.until(lambda: scene.hosts(2) and scene.hosts(3), "the move has begun")

        def halves() -> list[float]:
            return [scene.partition(member).log.size_bytes / size for member in (2, 3)]

        await scene.until(lambda: max(halves()) > 0.5, "one of them is half filled", within_s=120)
        assert min(halves()) > 0.25
        await scene.in_sync(1, 2, 3, within_s=240)
        took_s = scene.cluster.loop.time() - began
        assert took_s > (2 * size - 2 * RATE) / RATE - 2
        await client.close()

    play(scenario, settings={"replica.fetch.max.bytes": "8000", "replica.fetch.response.max.bytes": "8000"})


def test_a_replica_whose_files_fail_hands_over_and_comes_back_after_a_restart() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        failing = scene.partition(1)
        failing.log.mark_offline(OSError(errno.EIO, "Input/output error"))
        answer = await scene.produce(1, "b")
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        await scene.until(lambda: scene.state(2).leader in (2, 3), "another one leads")
        assert 1 not in scene.state(2).isr
        leader = scene.state(2).leader
        await scene.until(lambda: scene.partition(leader).leader is not None, "it knows")
        await scene.wrote(leader, "c")
        scene.cluster.nodes[1].kill()
        await scene.cluster.nodes[1].restart()
        await scene.until(lambda: sorted(scene.state(2).isr) == [1, 2, 3], "all are in sync")
        await scene.same_everywhere(1, 2, 3)

    play(scenario)


def test_an_unclean_election_costs_records_and_leaves_one_history() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2])
        await scene.wrote(1, "a")
        scene.cluster.nodes[2].kill()
        await scene.in_sync(1)
        await scene.wrote(1, "b")
        scene.cluster.nodes[1].kill()
        await scene.cluster.nodes[2].restart()
        await scene.until(lambda: scene.state(3).leader == NO_LEADER, "nobody in sync is left")
        client = scene.cluster.client()
        await elect_leaders(client, [(TOPIC, 0)], election=Election.UNCLEAN)
        await scene.until(lambda: scene.partition(2).leader is not None, "the one that is left leads")
        await scene.wrote(2, "c")
        assert scene.partition(2).log.end_offset == 2
        await scene.cluster.nodes[1].restart()
        await scene.until(lambda: sorted(scene.state(2).isr) == [1, 2], "both are in sync")
        await scene.same_everywhere(1, 2)
        assert b"c" in scene.contents(1)
        await client.close()

    play(scenario)
