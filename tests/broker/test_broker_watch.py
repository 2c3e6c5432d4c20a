"""How soon a broker that failed is fenced: at once if its process is gone, after its session if it is only silent."""

from __future__ import annotations

import asyncio

import pytest
from tests.broker.replica_scene import Scene, play

# What Apache Kafka would wait for: whoever is fenced sooner was not fenced for its silence.
SESSION_OF_KAFKA = {"broker.session.timeout.ms": "9000", "broker.heartbeat.interval.ms": "2000"}


def active(scene: Scene) -> int:
    return next(number for number in (1, 2, 3) if scene.node(number).controller.is_active)


def survivors(scene: Scene, failed: int) -> list[int]:
    return [number for number in (1, 2, 3) if number != failed]


async def until_fenced(scene: Scene, failed: int) -> float:
    """The time that it takes until everybody else knows."""
    began_s = scene.cluster.loop.time()
    await scene.cluster.until(
        lambda: all(scene.node(number).image.brokers[failed].fenced for number in survivors(scene, failed)),
        what=f"broker {failed} is fenced",
        every_s=0.01,
    )
    return scene.cluster.loop.time() - began_s


@pytest.mark.parametrize("was_active", [False, True], ids=["broker", "broker-and-active-controller"])
def test_a_killed_broker_is_not_waited_for(*, was_active: bool) -> None:
    async def scenario(scene: Scene) -> None:
        first = active(scene)
        failed = first if was_active else survivors(scene, first)[0]
        await scene.create([failed, *survivors(scene, failed)])
        scene.cluster.nodes[failed].kill()
        # Where it was the active controller, another one has to be elected first.
        assert await until_fenced(scene, failed) < (2.0 if was_active else 0.2)
        leader = survivors(scene, failed)[0]
        await scene.until(lambda: scene.partition(leader).leader is not None, "the next replica leads")

    play(scenario, settings=SESSION_OF_KAFKA)


@pytest.mark.parametrize("was_active", [False, True], ids=["broker", "broker-and-active-controller"])
def test_a_stopped_broker_is_missed_after_its_session(*, was_active: bool) -> None:
    async def scenario(scene: Scene) -> None:
        first = active(scene)
        failed = first if was_active else survivors(scene, first)[0]
        scene.cluster.nodes[failed].pause()
        took_s = await until_fenced(scene, failed)
        assert 1.0 < took_s < (4.0 if was_active else 2.0)
        scene.cluster.nodes[failed].go_on()
        await scene.until(lambda: scene.node(first).image.brokers[failed].active, "it is back")

    play(scenario)


def test_a_connection_that_breaks_costs_nobody_anything() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3])
        await scene.wrote(1, "a")
        before = scene.state(1)
        for _ in range(5):
            scene.cluster.network.break_connections(share=1.0)
            await asyncio.sleep(1)
        assert scene.state(1).leader_epoch == before.leader_epoch, "somebody was fenced"
        assert all(broker.active for broker in scene.node(1).image.brokers.values())

    play(scenario, settings=SESSION_OF_KAFKA)


def test_new_partitions_are_not_read_again_with_every_further_one() -> None:
    async def scenario(scene: Scene) -> None:
        for number in range(12):
            await scene.create([1, 2, 3], topic=f"topic-{number}")
        feeds = [session.feed for session in scene.node(1).fetch_sessions._sessions.values()]
        assert len(feeds) == 2
        await scene.until(lambda: all(feed is not None and not feed.unsettled() for feed in feeds), "nothing to read")

    play(scenario)


def test_replicas_are_fetched_by_as_many_fetchers_as_the_settings_say() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1, 2, 3], [1, 3, 2], [1, 2, 3])
        for index in range(3):
            await scene.wrote(1, "a", index=index)
        fetchers = scene.node(2).replica_fetchers._fetchers
        assert [len(fetchers[1, number]._followed) for number in range(2)] in ([1, 2], [2, 1])
        await scene.same_everywhere(1, 2, 3)

    play(scenario, settings={"num.replica.fetchers": "2"})
