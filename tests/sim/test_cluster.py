"""Three real nodes in one process, on virtual time, with faults: fresh seeds in every test run.

`make soak` runs the same for hours. A seed that found something goes into seeds.txt and is replayed here for ever.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from millstream.testing.__main__ import arguments, plan_of
from millstream.testing.seeds import explain, fresh_seed
from millstream.testing.simulation import Plan, simulate
from tests.sim.seeds import given_seed, kept_clusters
from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from tests.sim.conftest import Tried

# As many as fit; `make soak` has hours. With all other tests of this folder `make test` simulates for five minutes
# (docs/testing.md), and says at its end how long it was.
SECONDS = float(os.environ.get("MILLSTREAM_SIMULATE_SECONDS", "90"))
THREE_NODES = "three nodes under faults"


def must_hold(plan: Plan) -> None:
    report = simulate(plan)
    if report.violation is not None:
        pytest.fail(explain(report), pytrace=False)


@pytest.mark.slow
def test_seeds_hold(tried: Tried) -> None:
    began, done = time.monotonic(), []
    given = given_seed()
    try:
        while not done or (given is None and time.monotonic() - began < SECONDS):
            done.append(fresh_seed() if given is None else given)
            must_hold(Plan(seed=done[-1], nodes=3, seconds=40))
    finally:
        tried(THREE_NODES, len(done), ", ".join(map(str, done)))


@pytest.mark.slow
@pytest.mark.parametrize("line", kept_clusters())
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
