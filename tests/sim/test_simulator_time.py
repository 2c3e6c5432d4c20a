"""The last lines of a test run: how long the simulator had, and seeds per hour."""

from __future__ import annotations

import pytest

from tests.support.simulator_time import SEEDS, summary


def report(when: str, seconds: float, *tried: list[object]) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid="tests/sim/test_cluster.py::test_x",
        location=("", 0, ""),
        keywords={},
        outcome="passed",
        longrepr=None,
        when=when,  # type: ignore[arg-type]
        user_properties=[(SEEDS, each) for each in tried],
        duration=seconds,
    )


def test_seeds_are_counted_once_and_by_kind() -> None:
    nodes, world = ["nodes", 10, 20.0, "31-40"], ["world", 80, 4.0, ""]
    reports = [
        report("setup", 1),
        report("call", 60, nodes),
        report("teardown", 5, nodes),
        report("call", 54, nodes, world),
    ]
    assert summary(reports) == [
        "tests/sim/: 2.0 minutes",
        "nodes: 20 seeds in 40 s, 1,800 per hour",
        "  fresh: 31-40, 31-40",
        "world: 80 seeds in 4 s, 72,000 per hour",
    ]
