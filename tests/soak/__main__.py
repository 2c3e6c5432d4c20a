"""Runs the parts one after the other, and says at the end what ran, for how long, and how it ended."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

PYTEST = ("-m", "pytest", "-q")
# What three nodes bear, without a partition of the network in which librdkafka's transactions wait for its end.
LOAD_FAULTS = "kill,stop,rolling-restart,lose-controller"


class Part(NamedTuple):
    """A command of this Python, and what it needs in its environment."""

    what: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


def parts(options: argparse.Namespace) -> dict[str, Part]:
    seeds, kills, minutes = options.seeds, options.kills, options.minutes
    jobs = str(os.cpu_count() or 1)
    return {
        "properties": Part(
            "the properties, 5,000 examples each",
            (*PYTEST, "-m", "not clients and not java", "--ignore=tests/sim", "--ignore=tests/chaos", *options.tests),
            {"HYPOTHESIS_PROFILE": "soak"},
        ),
        "fuzz": Part(
            f"mangled bytes for {minutes:g} minutes, seed {options.seed}",
            ("-m", "tests.soak.fuzz", "--minutes", f"{minutes:g}", "--seed", str(options.seed)),
            {},
        ),
        "kills": Part(
            f"tests/chaos, {kills} kills -9, and a tenth as many of Apache Kafka",
            (*PYTEST, "tests/chaos"),
            {"MILLSTREAM_KILLS": str(kills)},
        ),
        "cluster": Part(
            f"tests/cluster_chaos: faults by the dice for {options.chaos:g} minutes, seed {options.seed}",
            ("-m", "tests.cluster_chaos", "--minutes", f"{options.chaos:g}", "--seed", str(options.seed)),
            {},
        ),
        "load": Part(
            f"tests/cluster_chaos under a heavy load: three processes, {options.load:g} minutes, seed {options.seed}",
            (
                *("-m", "tests.cluster_chaos", "--load", "heavy", "--nodes", "3", "--faults", LOAD_FAULTS),
                *("--minutes", f"{options.load:g}", "--seed", str(options.seed)),
            ),
            {},
        ),
        "groups": Part(
            "a hundred new groups under that load",
            ("-m", "tests.cluster_chaos.fresh_groups", "--groups", "100", "--together", "100", "--early"),
            {},
        ),
        "large": Part(
            "300 brokers and 10,000 partitions, simulated",
            ("-m", "tests.sim.large_cluster"),
            {},
        ),
        "crashes": Part(
            f"power failures at every step, {seeds} seeds", (*PYTEST, "tests/sim"), {"MILLSTREAM_SEEDS": str(seeds)}
        ),
        "simulation": Part(
            f"a simulated cluster of three with faults, {options.simulate:g} minutes of new seeds",
            ("-m", "millstream.testing", "--minutes", f"{options.simulate:g}", "--keep-going", "--jobs", jobs),
            {},
        ),
        "spark": Part(
            f"exactly once in Spark: driver, workers and broker killed at each step, {max(kills // 10, 1)} rounds",
            (*PYTEST, "tests/spark/test_exactly_once_kills.py"),
            {"MILLSTREAM_SPARK_ROUNDS": str(max(kills // 10, 1))},
        ),
        "guarantees": Part(
            f"the table of docs/guarantees.md, {kills} kills, {seeds} seeds",
            ("-m", "tests.chaos.measure_guarantees", "--kills", str(kills), "--seeds", str(seeds)),
            {},
        ),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="The long runs.")
    names = (
        "properties",
        "fuzz",
        "kills",
        "cluster",
        "load",
        "groups",
        "large",
        "crashes",
        "simulation",
        "spark",
        "guarantees",
    )
    parser.add_argument("--only", action="append", choices=names, help="this part (repeatable)")
    parser.add_argument("--minutes", type=float, default=10, help="of fuzzing")
    parser.add_argument(
        "--seed", type=int, default=time.time_ns() % 1_000_000, help="of fuzzing and faults; a new one each time"
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--chaos", type=float, default=30, help="minutes of faults on a cluster of processes")
    parser.add_argument("--load", type=float, default=10, help="minutes of faults under a heavy load")
    parser.add_argument("--seeds", type=int, default=20, help="of each simulated crash")
    parser.add_argument("--simulate", type=float, default=120, help="minutes of simulation")
    parser.add_argument("tests", nargs="*", default=["tests"], help="where the properties are")
    options = parser.parse_args()
    lines: list[str] = []
    failed = False
    for name, part in parts(options).items():
        if options.only and name not in options.only:
            continue
        print(f"== {name}: {part.what}", flush=True)
        began = time.monotonic()
        command = [sys.executable, *part.arguments]
        code = subprocess.run(command, check=False, cwd=PROJECT_ROOT, env=os.environ | part.environment).returncode
        failed |= code != 0
        took_s = round(time.monotonic() - began)
        ended = "held" if code == 0 else f"FAILED (exit code {code})"
        lines.append(f"{name:<12} {took_s // 60:>4} min {took_s % 60:>2} s   {ended:<24} {part.what}")
    print("\n" + "\n".join(lines))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
