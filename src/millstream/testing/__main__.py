"""Simulate: `python -m millstream.testing --seed 7` replays one seed, `--minutes 60` tries new ones for an hour."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from typing import TYPE_CHECKING

from millstream.testing.layouts import LAYOUTS
from millstream.testing.seeds import Outcome, fresh_seed, run_all
from millstream.testing.simulation import WORK, Plan

if TYPE_CHECKING:
    from collections.abc import Iterator


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line; of this process unless another is given."""
    parser = argparse.ArgumentParser(prog="python -m millstream.testing", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="this seed; without it, new ones")
    parser.add_argument("--seeds", type=int, default=1, help="how many, one after the other")
    parser.add_argument("--minutes", type=float, default=None, help="of real time, instead of a number of seeds")
    parser.add_argument("--jobs", type=int, default=1, help="processes that try seeds at the same time")
    parser.add_argument("--nodes", type=int, default=3, help="brokers")
    parser.add_argument("--layout", choices=list(LAYOUTS), default=None, help="who does what; drawn if not given")
    parser.add_argument("--seconds", type=float, default=60, help="of virtual time with faults")
    parser.add_argument("--faults", default=None, help="names with commas between them; none for no faults")
    parser.add_argument("--work", default=",".join(WORK), help="what clients do")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of all nodes")
    parser.add_argument("--aloud", action="store_true", help="print every event")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    return parser.parse_args(given)


def plan_of(options: argparse.Namespace, begun: int = 0) -> Plan:
    """The plan of the seed after so many; a fresh one if none is given."""
    return Plan(
        seed=fresh_seed() if options.seed is None else options.seed + begun,
        nodes=options.nodes,
        seconds=options.seconds,
        faults=_names(options.faults),
        work=tuple(options.work.split(",")),
        settings=dict(each.split("=", 1) for each in options.set),
        layout=options.layout,
        aloud=options.aloud,
    )


def _plans(options: argparse.Namespace, began: float) -> Iterator[Plan]:
    for begun in itertools.count():
        if begun >= options.seeds if options.minutes is None else time.monotonic() - began >= options.minutes * 60:
            return
        yield plan_of(options, begun)


def main() -> int:
    options = arguments()
    began = time.monotonic()
    outcomes: list[Outcome] = []
    for outcome in run_all(_plans(options, began), options.jobs):
        outcomes.append(outcome)
        _say(outcome.text)
        if outcome.line_to_keep is not None and not options.keep_going:
            break
    took_s = time.monotonic() - began
    failed = [outcome.line_to_keep for outcome in outcomes if outcome.line_to_keep is not None]
    _say(
        f"{len(outcomes)} seeds in {took_s:.0f} s, {len(outcomes) / took_s * 3600:.0f} seeds per hour, "
        f"{len(failed)} failed"
    )
    processor_s = max(sum(outcome.processor_s for outcome in outcomes), 0.001)
    _say(
        f"a second of processor time: {len(outcomes) / processor_s:.2f} seeds, "
        f"{sum(outcome.faults for outcome in outcomes) / processor_s:.2f} faults, "
        f"{sum(outcome.acknowledged for outcome in outcomes) / processor_s:.0f} records acknowledged"
    )
    for line in failed:
        _say(f"  {line}")
    return 1 if failed else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return () if text == "none" else tuple(text.split(","))


if __name__ == "__main__":
    sys.exit(main())
