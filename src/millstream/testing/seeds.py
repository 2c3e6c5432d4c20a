"""Trying seeds: where they come from, how they run in several processes, and how a failed one is told.

Not in `__main__`: a process that is started to help does not find functions there.
"""

from __future__ import annotations

import itertools
import multiprocessing
import secrets
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.testing.simulation import WORK, Plan, Report, simulate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Short enough to be read out, and many more than anybody tries.
SEED_MAX = 1_000_000_000
LAST_EVENTS_SHOWN = 60


def fresh_seed() -> int:
    """A seed from the system's randomness, whatever the program has done to its own."""
    return secrets.randbelow(SEED_MAX)


def arguments_of(plan: Plan) -> str:
    """What makes this plan out of a command line."""
    parts = [f"--seed {plan.seed} --nodes {plan.nodes} --seconds {plan.seconds:g}"]
    if plan.layout is not None:
        parts.append(f"--layout {plan.layout}")
    if plan.faults is not None:
        parts.append(f"--faults {','.join(plan.faults) or 'none'}")
    if tuple(plan.work) != WORK:
        parts.append(f"--work {','.join(plan.work)}")
    parts += [f"--set {name}={value}" for name, value in plan.settings.items()]
    return " ".join(parts)


def command(plan: Plan) -> str:
    """What replays a plan."""
    return f"python -m millstream.testing {arguments_of(plan)}"


def line_to_keep(report: Report) -> str:
    """A failed seed as a line of tests/sim/seeds.txt, which replays it in every test run."""
    found = str(report.violation).splitlines() or [type(report.violation).__name__]
    return f"{arguments_of(report.plan)}    # {found[0]}"


def explain(report: Report) -> str:
    """A failed seed in words."""
    lines = [
        f"seed {report.plan.seed} FAILED: {type(report.violation).__name__}: {report.violation}",
        f"replay: {command(report.plan)}",
        f"keep it in tests/sim/seeds.txt: {line_to_keep(report)}",
        str(report),
        "the last events:",
        *report.last_events[-LAST_EVENTS_SHOWN:],
    ]
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What is left of a report when it comes from another process."""

    text: str
    line_to_keep: str | None
    acknowledged: int
    faults: int
    processor_s: float


def _run(plan: Plan) -> Outcome:
    began_s = time.process_time()
    report = simulate(plan)
    failed = report.violation is not None
    return Outcome(
        explain(report) if failed else str(report),
        line_to_keep(report) if failed else None,
        report.acknowledged,
        sum(report.faults.values()),
        time.process_time() - began_s,
    )


def run_all(plans: Iterable[Plan], jobs: int) -> Iterator[Outcome]:
    """Each plan's outcome, as they come; no more plans are taken than there are processes to run them."""
    if jobs == 1:
        yield from map(_run, plans)
        return
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as processes:
        todo = iter(plans)
        running: set[Future[Outcome]] = {processes.submit(_run, plan) for plan in itertools.islice(todo, jobs)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            running |= {processes.submit(_run, plan) for plan in itertools.islice(todo, len(done))}
            for each in done:
                yield each.result()
