"""`python -m tests.cluster_chaos`: the run itself, in namespaces of its own unless it is told to use relays."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

from tests.cluster_chaos.faults import FAULTS
from tests.cluster_chaos.links import Namespaces, entering
from tests.cluster_chaos.processes import APACHE_KAFKA, MILLSTREAM, NODES
from tests.cluster_chaos.relays import Relays
from tests.cluster_chaos.scenario import LOADS, Plan, run
from tests.support.requirements import everything_required

INSIDE = "MILLSTREAM_CHAOS_INSIDE"

# A relay has both directions of a connection in its hands, and a small disk has to be mounted.
NEEDS_NAMESPACES = ("one-way", "full-disk")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster_chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="of victims and order; a new one each time")
    parser.add_argument("--minutes", type=float, default=None, help="faults by the dice for so long")
    parser.add_argument("--faults", default=",".join(FAULTS), help=f"of {', '.join(FAULTS)}")
    parser.add_argument(
        "--links", choices=("namespaces", "relays"), default=None, help="namespaces where they are allowed"
    )
    parser.add_argument("--load", choices=tuple(LOADS), default="light", help="which clients work")
    parser.add_argument("--nodes", type=int, choices=(3, 5), default=len(NODES))
    parser.add_argument(
        "--against", choices=(MILLSTREAM, APACHE_KAFKA), default=MILLSTREAM, help="whose brokers are broken"
    )
    parser.add_argument("--directory", type=Path, default=None, help="kept afterwards; a temporary one if not given")
    options = parser.parse_args()
    kind = "relays" if options.links == "relays" else _enter()
    if options.links not in (None, kind):
        return 1
    seed = options.seed if options.seed is not None else time.time_ns() % 1_000_000
    faults = options.faults.split(",")
    if options.links is None and kind == "relays":
        if everything_required():
            print(f"{', '.join(NEEDS_NAMESPACES)} take network namespaces (MILLSTREAM_REQUIRE_ALL is set)", flush=True)
            return 1
        faults = [each for each in faults if each not in NEEDS_NAMESPACES]
        print(f"left out, as only namespaces can do it: {', '.join(NEEDS_NAMESPACES)}", flush=True)
    plan = Plan(seed, faults, options.minutes, options.load, NODES[: options.nodes], options.against)
    with tempfile.TemporaryDirectory(prefix="millstream-chaos-") as folder:
        links = Namespaces(plan.nodes) if kind == "namespaces" else Relays(plan.nodes)
        print(
            f"replay: python -m tests.cluster_chaos --seed {seed} --faults {','.join(faults)} --links {kind} "
            f"--load {plan.load} --nodes {len(plan.nodes)} --against {plan.software}",
            flush=True,
        )
        print(run(plan, options.directory or Path(folder), links, keep=options.directory is not None), flush=True)
    return 0


def _enter() -> str:
    """Start this command again in namespaces of its own; where they are refused, relays have to do."""
    if INSIDE in os.environ:
        return "namespaces"
    try:
        words = entering()
    except LookupError as refusal:
        print(f"no network namespaces here ({refusal}): links are relays", flush=True)
        return "relays"
    command = [*words, sys.executable, "-m", "tests.cluster_chaos", *sys.argv[1:]]
    return os.execvpe(command[0], command, os.environ | {INSIDE: "1"})


if __name__ == "__main__":
    sys.exit(main())
