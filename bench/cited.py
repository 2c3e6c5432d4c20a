"""The results that the documentation cites, and its tables, which are made from them.

`bench/cited.json` holds for each row the raw rounds of one run, with its commit and machine, and the load that the
machine had before it. `python -m bench --cite <results>` takes a run's rows over; `--write-docs` writes the tables of
docs/performance.md between their markers; `--check-docs` fails where a table says anything else than the results, or
than the bars of today. Rows of older runs, whose rounds were not kept, have medians and say so.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from tests.support.requirements import PROJECT_ROOT

from bench.contenders import APACHE_KAFKA
from bench.report import number
from bench.rows import judge

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from bench.rows import Row, Verdict

CITED = PROJECT_ROOT / "bench" / "cited.json"
DOCUMENT = PROJECT_ROOT / "docs" / "performance.md"
_TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n)(.*?)(<!-- end of table -->\n)", re.DOTALL)
OUTCOMES = {True: "holds", False: "**missed**", None: "open"}
# What a machine has by itself that does nothing.
LOAD_MAX = 0.5
Cited = dict[str, dict[str, Any]]


class Uncitable(ValueError):
    """A run whose figures say nothing."""


def load(path: Path = CITED) -> Cited:
    """Row name -> where it was measured ("source") and "rounds": contender -> figures of each round."""
    found: Cited = json.loads(path.read_text())
    return found


def cite(cited: Cited, results: Mapping[str, Any]) -> list[str]:
    """Take over the rows of a run, the file that `python -m bench` wrote; their names."""
    if results["scale"] != 1.0:
        raise Uncitable(f"a run at {results['scale']:g} of its size is nothing to cite")
    if results["load_before"] > LOAD_MAX:
        raise Uncitable(f"the machine had a load of {results['load_before']:.2f} before it began: others were at work")
    if results["commit"].endswith("-dirty"):
        raise Uncitable(f"what was measured is in no commit: {results['commit']}")
    source = {name: results[name] for name in ("at", "commit", "machine", "load_before")}
    for name, rounds in results["rounds"].items():
        cited[name] = {"source": source, "rounds": rounds}
    return list(results["rounds"])


def save(cited: Cited, path: Path = CITED) -> None:
    path.write_text(json.dumps(dict(sorted(cited.items())), indent=1) + "\n")


def off(text: str, tables: Mapping[str, Sequence[Row]], cited: Cited) -> list[str]:
    """The tables of a document that say something else than the results; one that is missing counts."""
    found = {match[2]: match[3] for match in _TABLE.finditer(text)}
    unknown = sorted(cited.keys() - {row.name for rows in tables.values() for row in rows})
    return [
        *(f"{name}: there are results, but no such row" for name in unknown),
        *(
            f"{name}: the table is {'off' if name in found else 'missing'}"
            for name, rows in tables.items()
            if found.get(name) != render(rows, cited)
        ),
    ]


def rewritten(text: str, tables: Mapping[str, Sequence[Row]], cited: Cited) -> str:
    """The document with its tables made anew."""
    return _TABLE.sub(lambda match: match[1] + render(tables[match[2]], cited) + match[4], text)


def render(rows: Sequence[Row], cited: Cited) -> str:
    """A table with a line for each bar, and below it where its lines come from."""
    beside_kafka = any(APACHE_KAFKA in row.contenders for row in rows)
    headings = ["row", "work", "figure"]
    headings += ["Apache Kafka", "Millstream", "ratio", "only stores", "of it"] if beside_kafka else ["value"]
    headings += ["bar", "", "run"]
    lines = [_line(headings), _line("---" for _ in headings)]
    sources: list[str] = []
    for row in rows:
        entry = cited.get(row.name)
        run = "-" if entry is None else str(_number_of(sources, _described(entry)))
        name_and_title = [f"`{row.name}`", row.title]
        for verdict in judge(row, {} if entry is None else entry["rounds"]):
            figures = _beside_kafka(verdict) if beside_kafka else [number(verdict.millstream)]
            outcome = "not measured yet" if verdict.millstream is None else _outcome(verdict)
            bar = verdict.bar.describe()
            lines.append(_line([*name_and_title, verdict.bar.figure, *figures, bar, outcome, run]))
            name_and_title = ["", ""]
    notes = [f"Run {index}: {source}" for index, source in enumerate(sources, 1)]
    return "\n".join([*lines, *(["", *("- " + note for note in notes)] if notes else [])]) + "\n"


def _beside_kafka(verdict: Verdict) -> list[str]:
    return [
        number(verdict.apache_kafka),
        number(verdict.millstream),
        "-" if verdict.ratio is None else f"{verdict.ratio:.2f}x",
        number(verdict.store_limit),
        "-" if verdict.of_limit is None else f"{verdict.of_limit:.2f}",
    ]


def _outcome(verdict: Verdict) -> str:
    return OUTCOMES[verdict.holds] if verdict.bar.describe() else ""


def _line(cells: Any) -> str:
    return "| " + " | ".join(cells) + " |"


def _number_of(sources: list[str], source: str) -> int:
    if source not in sources:
        sources.append(source)
    return sources.index(source) + 1


def _described(entry: Mapping[str, Any]) -> str:
    source = entry["source"]
    if isinstance(source, str):
        return source
    machine = source["machine"]
    return (
        f"{source['at']} UTC, commit {source['commit']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}, load {source['load_before']:.2f} before it began"
    )
