"""Three real nodes in one process, on virtual time, with faults: the seeds of every test run.

`make soak` runs the same for hours with new seeds. A seed that found something goes into seeds.txt and is replayed here
for ever.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millstream.testing.__main__ import arguments, explain, plan_of
from millstream.testing.simulation import Plan, simulate
from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from tests.sim.conftest import Tried

SEEDS_FILE = Path(__file__).with_name("seeds.txt")
# As many as fit; `make soak` has hours. With all other tests of this folder `make test` simulates for five minutes
# (docs/testing.md), and says at its end how long it was.
SECONDS = float(os.environ.get("MILLSTREAM_SIMULATE_SECONDS", "90"))
THREE_NODES = "three nodes under faults"


def kept_seeds() -> list[str]:
    lines = [line.split("#")[0].strip() for line in SEEDS_FILE.read_text().splitlines()]
    return [line for line in lines if line]


def must_hold(plan: Plan) -> None:
    report = simulate(plan)
    if report.violation is not None:
        pytest.fail(explain(report), pytrace=False)


@pytest.mark.slow
def test_seeds_hold(tried: Tried) -> None:
    began, done = time.monotonic(), 0
    while done == 0 or time.monotonic() - began < SECONDS:
        done += 1
        must_hold(Plan(seed=done, nodes=3, seconds=40))
    tried(THREE_NODES, done)


@pytest.mark.slow
@pytest.mark.parametrize("line", kept_seeds())
def test_a_seed_that_failed_once_holds(line: str, tried: Tried) -> None:
    must_hold(plan_of(arguments(shlex.split(line))))
    tried(THREE_NODES, 1)


@pytest.mark.slow
def test_a_seed_gives_the_same_run_whatever_the_order_of_sets() -> None:
    command = [sys.executable, "-m", "millstream.testing", "--seed", "11", "--seconds", "10"]
    traces = [
        subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            cwd=PROJECT_ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(PROJECT_ROOT / "src")},
        ).stdout
        for hash_seed in ("1", "2")
    ]
    first = [line for line in traces[0].splitlines() if line.startswith("seed 11")]
    assert "trace " in first[0]
    for other in traces[1:]:
        assert [line for line in other.splitlines() if line.startswith("seed 11")] == first


def test_two_runs_of_one_plan_are_one_run() -> None:
    one, other = (simulate(Plan(seed=5, nodes=1, seconds=10)) for _ in range(2))
    assert one.digest == other.digest
    assert str(one) == str(other)
    assert one.events > 100


def test_another_seed_is_another_run() -> None:
    one, other = (simulate(Plan(seed=seed, nodes=1, seconds=5)) for seed in (5, 6))
    assert one.digest != other.digest
