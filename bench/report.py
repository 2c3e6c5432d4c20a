"""The table that a person reads, and the JSON that a machine compares."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench.rows import Figures, Verdict

RESULTS = Path(__file__).with_name("results")


def number(value: float | None) -> str:
    """A figure as a person reads it: no digits that would not come out the same twice."""
    if value is None:
        return "-"
    if abs(value) < 1000:
        return f"{value:.3g}"
    return f"{float(f'{value:.4g}'):,.0f}"


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    table = Table(title="Millstream beside Apache Kafka 4.3.1 (1 GB heap, G1): medians")
    for heading in (
        "work",
        "figure",
        "Apache Kafka",
        "Millstream",
        "keeps nothing",
        "only stores",
        "of it",
        "ratio",
        "bar",
        "",
    ):
        table.add_column(heading, justify="left" if heading in ("work", "figure", "bar", "") else "right")
    for verdict in verdicts:
        ratio = "-" if verdict.ratio is None else f"{verdict.ratio:.2f}x"
        outcome = {True: "[green]holds", False: "[red]MISSED", None: "[yellow]not measured"}[verdict.holds]
        if not verdict.bar.describe():
            outcome = ""
        table.add_row(
            verdict.title,
            verdict.bar.figure,
            number(verdict.apache_kafka),
            number(verdict.millstream),
            number(verdict.client_limit),
            number(verdict.store_limit),
            "-" if verdict.of_limit is None else f"{verdict.of_limit:.2f}",
            ratio,
            verdict.bar.describe(),
            outcome,
        )
    _console().print(table)


def print_costs(costs: Sequence[Mapping[str, Any]]) -> None:
    table = Table(title="What features cost: Millstream against itself")
    for heading in ("load", "variant", "records/s", "of the first"):
        table.add_column(heading, justify="left" if heading in ("load", "variant") else "right")
    for row in sorted(costs, key=lambda row: str(row["load"])):
        table.add_row(row["load"], row["variant"], number(row["records/s"]), f"{row['of the first']:.2f}x")
    _console().print(table)


def _console() -> Console:
    # Piped into a file, a table should not be squeezed into eighty columns.
    return Console(width=None if os.isatty(1) else 200)


def circumstances() -> dict[str, Any]:
    """What has to be known of a run to believe it; asked before it begins."""
    command = ["git", "-C", str(RESULTS.parent), "describe", "--always", "--dirty"]
    commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    machine = {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
    return {"commit": commit, "machine": machine, "load_before": os.getloadavg()[0]}


def write_json(name: str, content: Mapping[str, Any]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    path = RESULTS / f"{name}-{stamp}.json"
    path.write_text(json.dumps({"at": stamp, **content}, indent=2) + "\n")
    return path


def as_json(
    verdicts: Sequence[Verdict], rounds: Mapping[str, Mapping[str, Sequence[Figures]]], scale: float
) -> dict[str, Any]:
    return {
        "scale": scale,
        "verdicts": [
            {
                "row": verdict.row,
                "figure": verdict.bar.figure,
                "apache_kafka": verdict.apache_kafka,
                "millstream": verdict.millstream,
                "keeps_nothing": verdict.client_limit,
                "only_stores": verdict.store_limit,
                "ratio": verdict.ratio,
                "of_limit": verdict.of_limit,
                "bar": verdict.bar.describe(),
                "holds": verdict.holds,
            }
            for verdict in verdicts
        ],
        "rounds": rounds,
    }
