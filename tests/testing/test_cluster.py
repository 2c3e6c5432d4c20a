"""What a simulated cluster takes for a mistake, whatever its scenario does."""

from __future__ import annotations

import asyncio

import pytest

from millstream.testing import SimulatedCluster, Violation


async def forgotten() -> None:
    """Work that was begun by nobody."""


def test_a_coroutine_that_is_made_and_dropped_is_a_violation() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        forgotten()  # type: ignore[unused-coroutine]

    with pytest.raises(
        Violation, match=r"every coroutine is awaited: a client: coroutine 'forgotten' was never awaited"
    ):
        SimulatedCluster(1, nodes=1).run(scenario)


def test_one_that_was_made_before_a_step_that_may_fail_is_one_as_well() -> None:
    async def writes(cluster: SimulatedCluster) -> None:
        kept = [forgotten()]
        cluster.nodes[1].disk.create("/data/last-words")
        await asyncio.gather(*kept)

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        node = cluster.nodes[1]
        assert node.process is not None
        node.disk.power_off_at = node.disk.steps + 1
        node.process.start(writes(cluster))
        await asyncio.sleep(1)

    with pytest.raises(Violation, match=r"node-1#1: coroutine 'forgotten' was never awaited"):
        SimulatedCluster(1, nodes=1).run(scenario)


def test_one_that_a_killed_program_had_begun_is_not() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert cluster.nodes[1].process is not None
        waiting = cluster.nodes[1].process.start(asyncio.sleep(60))
        cluster.nodes[1].kill()
        await asyncio.sleep(1)
        assert not waiting.done()

    SimulatedCluster(1, nodes=1).run(scenario)
