"""Simulate: `python -m millstream.testing --seed 7` replays one seed, `--minutes 60` tries new ones for an hour."""

from __future__ import annotations

import argparse
import sys
import time

from millstream.testing.layouts import LAYOUTS
from millstream.testing.simulation import WORK, Plan, Report, simulate

LAST_EVENTS_SHOWN = 60


def command(plan: Plan) -> str:
    """What replays a plan."""
    parts = [f"python -m millstream.testing --seed {plan.seed} --nodes {plan.nodes} --seconds {plan.seconds:g}"]
    if plan.layout is not None:
        parts.append(f"--layout {plan.layout}")
    if plan.faults is not None:
        parts.append(f"--faults {','.join(plan.faults) or 'none'}")
    if tuple(plan.work) != WORK:
        parts.append(f"--work {','.join(plan.work)}")
    parts += [f"--set {name}={value}" for name, value in plan.settings.items()]
    return " ".join(parts)


def explain(report: Report) -> str:
    """A failed seed in words."""
    lines = [
        f"seed {report.plan.seed} FAILED: {type(report.violation).__name__}: {report.violation}",
        f"replay: {command(report.plan)}",
        str(report),
        "the last events:",
        *report.last_events[-LAST_EVENTS_SHOWN:],
    ]
    return "\n".join(lines)


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    """The command line; of this process unless another is given."""
    parser = argparse.ArgumentParser(prog="python -m millstream.testing", description=__doc__)
    parser.add_argument("--seed", type=int, default=None, help="this seed; without it, new ones")
    parser.add_argument("--seeds", type=int, default=1, help="how many, one after the other")
    parser.add_argument("--minutes", type=float, default=None, help="of real time, instead of a number of seeds")
    parser.add_argument("--nodes", type=int, default=3, help="brokers")
    parser.add_argument("--layout", choices=list(LAYOUTS), default=None, help="who does what; drawn if not given")
    parser.add_argument("--seconds", type=float, default=60, help="of virtual time with faults")
    parser.add_argument("--faults", default=None, help="names with commas between them; none for no faults")
    parser.add_argument("--work", default=",".join(WORK), help="what clients do")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of all nodes")
    parser.add_argument("--aloud", action="store_true", help="print every event")
    parser.add_argument("--keep-going", action="store_true", help="go on after a failure")
    return parser.parse_args(given)


def plan_of(options: argparse.Namespace, done: int = 0) -> Plan:
    """The plan of the seed after so many."""
    return Plan(
        seed=options.seed + done,
        nodes=options.nodes,
        seconds=options.seconds,
        faults=_names(options.faults),
        work=tuple(options.work.split(",")),
        settings=dict(each.split("=", 1) for each in options.set),
        layout=options.layout,
        aloud=options.aloud,
    )


def main() -> int:
    options = arguments()
    if options.seed is None:
        options.seed = time.time_ns() % 1_000_000_000
    began = time.monotonic()
    failed: list[Report] = []
    done = 0
    while done < options.seeds if options.minutes is None else time.monotonic() - began < options.minutes * 60:
        report = simulate(plan_of(options, done))
        done += 1
        if report.violation is None:
            _say(str(report))
            continue
        failed.append(report)
        _say(explain(report))
        if not options.keep_going:
            break
    took_s = time.monotonic() - began
    _say(f"{done} seeds in {took_s:.0f} s, {done / took_s * 3600:.0f} seeds per hour, {len(failed)} failed")
    for report in failed:
        _say(f"  {command(report.plan)}    # {report.violation}")
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
