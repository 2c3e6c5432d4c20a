"""Who is in sync on three nodes, and what writers hear of it."""

from __future__ import annotations

import asyncio

from tests.broker.replica_scene import Scene, play

from millstream.protocol.errors import ErrorCode

# A follower that stands still is out of the ISR after two seconds, long before its broker is fenced.
SHORT_LAG = {
    "replica.lag.time.max.ms": "2000",
    "replica.fetch.wait.max.ms": "500",
    "broker.session.timeout.ms": "60000",
}


def cut_off_from_leader(scene: Scene, follower: int, leader: int = 1) -> None:
    """The follower's fetches don't reach the leader; everything else does."""
    scene.cluster.network.block([f"node-{follower}"], [f"node-{leader}"])


def test_a_follower_that_lags_leaves_the_isr_and_comes_back() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        leading_controller = next(node_id for node_id in (1, 2, 3) if scene.node(node_id).controller.is_active)
        follower = 2 if leading_controller != 2 else 3
        cut_off_from_leader(scene, follower)
        waiting = asyncio.ensure_future(scene.produce(1, "b"))
        other = ({2, 3} - {follower}).pop()
        await scene.in_sync(1, other)
        assert (await waiting).error_code == ErrorCode.NONE
        scene.cluster.network.heal()
        await scene.in_sync(1, 2, 3)
        await scene.same_everywhere(1, 2, 3)

    play(scenario, settings=SHORT_LAG)


def test_an_idle_partition_keeps_its_isr() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        before = scene.state(1).partition_epoch
        await asyncio.sleep(30)
        assert scene.state(1).partition_epoch == before

    play(scenario, settings=SHORT_LAG)


def test_too_few_in_sync_refuse_before_the_append() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3], configs={"min.insync.replicas": "2"})
        await scene.wrote(1, "a")
        for node_id in (2, 3):
            scene.cluster.network.block([f"node-{node_id}"], ["node-1"])
        assert (await scene.produce(1, "b", timeout_ms=500)).error_code == ErrorCode.REQUEST_TIMED_OUT
        scene.cluster.network.heal()
        await scene.in_sync(1, 2, 3)
        await scene.until(lambda: scene.partition(1).log.high_watermark == 2, "what timed out is committed after all")

    play(scenario, settings=SHORT_LAG)


def test_a_leader_alone_takes_acks_one_but_refuses_acks_all_and_commits_nothing() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2], configs={"min.insync.replicas": "2"})
        await scene.wrote(1, "a")
        scene.cluster.nodes[2].kill()
        await scene.in_sync(1)
        assert (await scene.produce(1, "b")).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        await scene.wrote(1, "c", acks=1)
        log = scene.partition(1).log
        assert (log.high_watermark, log.end_offset) == (1, 2)
        await scene.cluster.nodes[2].restart()
        await scene.in_sync(1, 2)
        await scene.wrote(1, "d")
        assert log.high_watermark == 3

    play(scenario)


def test_who_waits_at_a_leader_that_is_one_no_longer_is_told() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        for node_id in (2, 3):
            # Its answers to followers are lost, so nothing more is acknowledged; the quorum's too, in time.
            scene.cluster.network.block(["node-1"], [f"node-{node_id}"])
        waiting = asyncio.ensure_future(scene.produce(1, "b", timeout_ms=60_000))
        await scene.until(lambda: scene.state(2).leader in (2, 3), "another one leads")
        scene.cluster.network.heal()
        assert (await waiting).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await scene.same_everywhere(1, 2, 3)

    play(scenario)


def test_a_broker_that_fails_again_holds_nobody_up() -> None:
    """What let the high watermark wait for it while it came back must not outlive its coming back."""

    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        for turn in range(3):
            scene.cluster.nodes[3].kill()
            began = scene.cluster.loop.time()
            await scene.wrote(1, f"while it is down, {turn}")
            assert scene.cluster.loop.time() - began < 10
            await scene.cluster.nodes[3].restart()
            await scene.in_sync(1, 2, 3)

    play(scenario)
