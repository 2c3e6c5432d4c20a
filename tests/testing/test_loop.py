"""The loop of the simulator: time jumps, programs can be stopped and killed."""

from __future__ import annotations

import asyncio

import pytest

from millstream.testing.loop import Process, Stuck, VirtualLoop


def run(scenario) -> None:
    loop = VirtualLoop()
    loop.run(scenario(loop))


def test_an_hour_passes_at_once() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        await asyncio.sleep(3600)
        assert loop.time() == 3600

    run(scenario)


def test_waiting_for_what_cannot_come_is_told() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        await loop.create_future()

    with pytest.raises(Stuck):
        run(scenario)


async def _count(ticks: list[float]) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(1)
        ticks.append(loop.time())


def test_a_stopped_program_stands_still_and_finds_its_timers_late() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        process = Process(loop, "node")
        ticks: list[float] = []
        process.start(_count(ticks))
        await asyncio.sleep(2.5)
        process.stop()
        await asyncio.sleep(10)
        assert ticks == [1, 2]
        process.go_on()
        await asyncio.sleep(1.2)
        assert ticks == [1, 2, 12.5, 13.5]

    run(scenario)


def test_what_was_cancelled_while_a_program_stood_still_does_not_run() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        process = Process(loop, "node")
        ran: list[str] = []

        async def program() -> None:
            late = loop.call_later(2, ran.append, "late")
            loop.call_later(1, late.cancel)
            await asyncio.sleep(60)

        process.start(program())
        await asyncio.sleep(0.5)
        process.stop()
        await asyncio.sleep(5)
        process.go_on()
        await asyncio.sleep(1)
        assert ran == []

    run(scenario)


def test_nothing_of_a_killed_program_runs_not_even_its_last_wishes() -> None:
    ran: list[str] = []

    async def scenario(loop: VirtualLoop) -> None:
        process = Process(loop, "node")

        async def program() -> None:
            try:
                await asyncio.sleep(10)
            finally:
                ran.append("finally")

        process.start(program())
        await asyncio.sleep(1)
        process.kill()
        await asyncio.sleep(20)
        assert ran == []
        assert process.ended.done()

    run(scenario)


def test_tasks_of_tasks_belong_to_the_program() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        process = Process(loop, "node")
        ticks: list[float] = []

        async def program() -> None:
            await asyncio.gather(_count(ticks), _count(ticks))

        process.start(program())
        await asyncio.sleep(1.5)
        process.kill()
        await asyncio.sleep(5)
        assert ticks == [1, 1]

    run(scenario)


def test_what_the_watcher_raises_ends_the_simulation() -> None:
    async def scenario(loop: VirtualLoop) -> None:
        def look(ran: dict[Process, None]) -> None:
            raise ArithmeticError(", ".join(process.name for process in ran))

        loop.after_turn = look
        Process(loop, "node").start(_count([]))
        await asyncio.sleep(60)

    with pytest.raises(ArithmeticError, match="node"):
        run(scenario)
