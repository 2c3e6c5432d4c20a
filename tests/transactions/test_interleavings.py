"""Whatever the order of messages, markers and crashes: all or nothing, and nothing hangs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transactions.world import PARTITIONS, World

# Each as often as its weight: most of the time somebody does what producers do.
WEIGHTS = {
    "send": 6,
    "deliver": 6,
    "commit": 3,
    "abort": 1,
    "finish": 3,
    "copy": 3,
    "marker": 4,
    "arrive": 1,
    "crash": 1,
    "wait": 1,
    "timeout": 1,
}
STEPS = st.lists(
    st.tuples(st.sampled_from([step for step, weight in WEIGHTS.items() for _ in range(weight)]), st.integers(0, 7)),
    max_size=100,
)


def take(world: World, step: str, number: int) -> None:
    client = world.clients[number % len(world.clients)] if world.clients else None
    match step:
        case "arrive":
            world.arrive()
        case "send" if client is not None:
            world.send(client, number % PARTITIONS)
        case "commit" | "abort" if client is not None:
            world.end(client, commit=step == "commit")
        case "finish" if client is not None:
            world.finish(client)
        case "deliver" | "copy":
            world.deliver(number, again_later=step == "copy")
        case "marker":
            world.write_marker(number)
        case "crash":
            world.crash()
        case "wait" | "timeout":
            world.wait(1_000 if step == "wait" else 80_000)


@pytest.mark.parametrize("version", [0, 1, 2])
@given(steps=STEPS)
@settings(max_examples=150)
def test_transactions_are_whole_and_end(version: int, steps: list[tuple[str, int]]) -> None:
    world = World(version)
    world.arrive()
    for step, number in steps:
        take(world, step, number)
    world.heal()
    world.check()


@pytest.mark.parametrize("version", [0, 1, 2])
@given(steps=STEPS)
def test_a_replay_gives_what_running_on_gives(version: int, steps: list[tuple[str, int]]) -> None:
    world = World(version)
    world.arrive()
    for step, number in steps:
        take(world, step, number)
        machine, replayed = world.scene.machine, world.scene.replayed()
        assert replayed.transactions == machine.transactions
        assert list(replayed.ongoing) == [name for name in replayed.transactions if name in machine.ongoing]
