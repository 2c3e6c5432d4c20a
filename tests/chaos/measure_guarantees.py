"""Measures the table of docs/guarantees.md and prints it as Markdown.

    python -m tests.chaos.measure_guarantees                     20 kills of each kind, 2 seeds of each crash
    python -m tests.chaos.measure_guarantees --kills 100 --seeds 10

The kills are of a real process, with librdkafka as the producer; the power fails in the simulator, where it can fail at
every moment.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

import structlog

from tests.chaos import measure_kills, measure_power

# What the power failures are tried with: the default, and durability asked for in its two ways.
POWER = {
    "defaults": {},
    "`millstream.acks.fsync=true`": {"millstream.acks.fsync": "true"},
    "`log.flush.interval.messages=1`": {"log.flush.interval.messages": "1"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description="What producers lose or double, measured.")
    parser.add_argument("--kills", type=int, default=20, help="of the process, for each kind of producer")
    parser.add_argument("--seeds", type=int, default=2, help="of every simulated crash")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    arguments = parser.parse_args()
    # What the simulated brokers say about their crashes is not news here.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    kept = _kills(arguments.kills, arguments.seed) & _crashes(arguments.seeds)
    return 0 if kept else 1


def _kills(kills: int, seed: int) -> bool:
    """Whether nothing was lost that must not be."""
    print("| producer | kills | acknowledged | lost | doubled | out of order | torn transactions |")
    print("|---|---|---|---|---|---|---|")
    kept = True
    for kind in measure_kills.KINDS:
        with tempfile.TemporaryDirectory(prefix="millstream-guarantees-") as folder:
            found = measure_kills.measure(kind, Path(folder), kills=kills, seed=seed)
        figures = (found.kills, found.acknowledged, found.lost, found.doubled, found.out_of_order, found.torn)
        print(f"| {kind} | " + " | ".join(f"{figure:,}" for figure in figures) + " |", flush=True)
        kept &= kind == "acks=0" or not found.lost
        kept &= kind not in ("idempotence", "transactions") or not (found.doubled or found.out_of_order or found.torn)
    return kept


def _crashes(seeds: int) -> bool:
    """Whether nothing was lost that must not be."""
    print()
    print("| what dies | settings | producer | crashes | acknowledged | lost | doubled | torn | stuck |")
    print("|---|---|---|---|---|---|---|---|---|")
    kept = True
    trials = [("the process", "defaults", POWER["defaults"], False)]
    trials += [("the power", label, settings, True) for label, settings in POWER.items()]
    for what, label, settings, lose_unsynced in trials:
        for kind in measure_power.KINDS:
            found = measure_power.measure(kind, lose_unsynced=lose_unsynced, seeds=seeds, settings=settings)
            figures = (found.crashes, found.acknowledged, found.lost, found.doubled, found.torn, found.hung)
            cells = " | ".join(f"{figure:,}" for figure in figures)
            print(f"| {what} | {label} | {kind} | {cells} |", flush=True)
            safe = not lose_unsynced or (bool(settings) and kind != "acks=1")
            kept &= not safe or kind == "acks=0" or not (found.lost or found.torn or found.hung)
            kept &= not safe or kind not in ("idempotence", "transactions") or not found.doubled
    return kept


if __name__ == "__main__":
    sys.exit(main())
