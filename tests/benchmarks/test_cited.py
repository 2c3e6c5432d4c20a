"""The tables of docs/performance.md say what was measured, and the check says so when one of them does not."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from bench import cited
from bench.contenders import APACHE_KAFKA, MILLSTREAM, STORE_LIMIT
from bench.rows import Bar, Figures, Row

from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from bench.session import Session


def measure(_session: Session, _name: str) -> Figures:
    raise AssertionError("documents measure nothing")


SPEED = Row(
    "speed",
    "how fast",
    measure,
    (Bar("records/s", "records/s", ratio_at_least=2.0, of_limit_at_least=0.9), Bar("CPU s", "s", ratio_at_most=0.5)),
)
TABLES = {"speeds": (SPEED,)}
DOCUMENT = "# Fast\n\n<!-- table: speeds -->\n<!-- end of table -->\n\nThe end.\n"
ROUNDS = {
    APACHE_KAFKA: [{"records/s": 100.0, "CPU s": 4.0}, {"records/s": 900.0, "CPU s": 5.0}, {"records/s": 90.0}],
    MILLSTREAM: [{"records/s": 290.0, "CPU s": 1.0}, {"records/s": 300.0, "CPU s": 1.5}, {"records/s": 9_000.0}],
    STORE_LIMIT: [{"records/s": 320.0}],
}
RESULTS: dict[str, Any] = {
    "at": "20261116-120000",
    "commit": "3e83e6d",
    "machine": {"cores": 2, "system": "Linux", "python": "3.11.2"},
    "load_before": 0.04,
    "scale": 1.0,
    "rounds": {"speed": ROUNDS},
}


def results() -> cited.Cited:
    found: cited.Cited = {}
    assert cited.cite(found, RESULTS) == ["speed"]
    return found


def test_the_documents_say_what_was_measured() -> None:
    command = [sys.executable, "-m", "bench", "--check-docs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=PROJECT_ROOT)
    assert done.returncode == 0, done.stderr


def test_a_table_has_the_medians_of_the_rounds_the_bars_and_the_run() -> None:
    (_, _, speed, cpu, _, run) = cited.render([SPEED], results()).splitlines()
    assert speed == (
        "| `speed` | how fast | records/s | 100 | 300 | 3.00x | 320 | 0.94 | >= 2x, >= 0.9 of the limit | holds | 1 |"
    )
    assert cpu == "|  |  | CPU s | 4.5 | 1.25 | 0.28x | - | - | <= 0.5x | holds | 1 |"
    assert (
        run == "- Run 1: 20261116-120000 UTC, commit 3e83e6d, 2 cores, Linux, Python 3.11.2, load 0.04 before it began"
    )


def test_a_table_that_was_written_is_not_off() -> None:
    written = cited.rewritten(DOCUMENT, TABLES, results())
    assert written.startswith("# Fast\n")
    assert written.endswith("\n\nThe end.\n")
    assert cited.off(written, TABLES, results()) == []


@pytest.mark.parametrize(("was", "becomes"), [("| 300 |", "| 301 |"), ("3.00x", "3.10x"), (">= 2x", ">= 1x")])
def test_a_figure_that_was_not_measured_is_found(was: str, becomes: str) -> None:
    written = cited.rewritten(DOCUMENT, TABLES, results())
    changed = written.replace(was, becomes)
    assert changed != written
    assert cited.off(changed, TABLES, results()) == ["speeds: the table is off"]


def test_other_results_are_found() -> None:
    written = cited.rewritten(DOCUMENT, TABLES, results())
    assert cited.off(written, TABLES, {}) == ["speeds: the table is off"]


def test_a_missing_table_and_results_without_a_row_are_found() -> None:
    assert cited.off("# Fast\n", TABLES, results()) == ["speeds: the table is missing"]
    other = results() | {"gone": results()["speed"]}
    written = cited.rewritten(DOCUMENT, TABLES, other)
    assert cited.off(written, TABLES, other) == ["gone: there are results, but no such row"]


def test_a_row_without_results_says_so() -> None:
    assert cited.render([SPEED], {}).splitlines()[2].endswith("| >= 2x, >= 0.9 of the limit | not measured yet | - |")


def test_a_bar_is_open_while_a_part_is_missing_and_missed_as_soon_as_a_part_is() -> None:
    without_limit = results()
    without_limit["speed"]["rounds"] = {name: ROUNDS[name] for name in (APACHE_KAFKA, MILLSTREAM)}
    assert "| open |" in cited.render([SPEED], without_limit)
    without_limit["speed"]["rounds"][MILLSTREAM] = [{"records/s": 150.0}]
    assert "| **missed** |" in cited.render([SPEED], without_limit)


@pytest.mark.parametrize("off", [{"scale": 0.0}, {"scale": 0.1}, {"load_before": 3.0}, {"commit": "3e83e6d-dirty"}])
def test_a_small_run_a_busy_machine_and_a_state_of_no_commit_cannot_be_cited(off: dict[str, Any]) -> None:
    found: cited.Cited = {}
    with pytest.raises(cited.Uncitable):
        cited.cite(found, RESULTS | off)
    assert found == {}


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "cited.json"
    cited.save(results(), path)
    assert cited.load(path) == json.loads(json.dumps(results()))
