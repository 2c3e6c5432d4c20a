"""Which seeds the simulated tests try: those that found something once, then fresh ones in every run.

A seed decides what is sent when, what breaks, which unsynced bytes a power failure spares. The same seeds every day
find nothing new, so they are drawn from the system's randomness; the end of a test run names them
(tests/support/simulator_time.py), and a failure says how to replay its own:

    MILLSTREAM_SEED=123456 pytest tests/sim/test_quorum_world.py

MILLSTREAM_SEEDS is how many times as many a long run tries. seeds.txt keeps what has failed, in one line each.
"""

from __future__ import annotations

import os
from pathlib import Path

from millstream.testing.seeds import fresh_seed

SEEDS_FILE = Path(__file__).with_name("seeds.txt")
TIMES = int(os.environ.get("MILLSTREAM_SEEDS", "1"))


def given_seed() -> int | None:
    """The one seed to replay, if there is one."""
    text = os.environ.get("MILLSTREAM_SEED")
    return None if text is None else int(text)


def fresh_seeds(count: int) -> range:
    """So many seeds that follow a fresh one, TIMES as many in a long run; the given one alone where it is replayed."""
    given = given_seed()
    if given is not None:
        return range(given, given + 1)
    first = fresh_seed()
    return range(first, first + count * TIMES)


def name_of(seeds: range) -> str:
    """Short, for the end of a test run."""
    return f"{seeds.start}" if len(seeds) == 1 else f"{seeds.start}-{seeds.stop - 1}"


def kept_lines() -> list[str]:
    lines = [line.split("#")[0].strip() for line in SEEDS_FILE.read_text().splitlines()]
    return [line for line in lines if line]


def kept_clusters() -> list[str]:
    """Arguments of `python -m millstream.testing`."""
    return [line for line in kept_lines() if line.startswith("--")]


def kept_seeds(simulation: str, **numbers: int) -> list[int]:
    """The kept seeds of another simulation with these very numbers: `quorum seed=5 voters=3`."""
    found = []
    for line in kept_lines():
        name, *rest = line.split()
        if name == simulation:
            given = {key: int(value) for key, value in (each.split("=") for each in rest)}
            seed = given.pop("seed")
            if given == numbers:
                found.append(seed)
    return found


def how_to_replay(simulation: str, test: str, seed: int, **numbers: int) -> str:
    """What a failure says: the command, and the line that keeps the seed."""
    line = " ".join([simulation, f"seed={seed}", *(f"{name}={value}" for name, value in numbers.items())])
    return f"replay: MILLSTREAM_SEED={seed} python -m pytest {test}\nkeep it in tests/sim/seeds.txt: {line}"
