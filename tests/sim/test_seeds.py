"""Where seeds come from, and what becomes of one that failed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from millstream.testing.__main__ import arguments, plan_of
from millstream.testing.seeds import arguments_of, explain, line_to_keep
from millstream.testing.simulation import Plan, Report
from millstream.testing.violations import Violation
from tests.sim import seeds

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_run_has_other_seeds_unless_one_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MILLSTREAM_SEED", raising=False)
    drawn = [seeds.fresh_seeds(3) for _ in range(5)]
    assert {len(each) for each in drawn} == {3 * seeds.TIMES}
    assert len({each.start for each in drawn}) > 1
    monkeypatch.setenv("MILLSTREAM_SEED", "77")
    assert list(seeds.fresh_seeds(3)) == [77]
    assert seeds.name_of(seeds.fresh_seeds(3)) == "77"


def test_the_line_of_a_failed_seed_replays_its_plan() -> None:
    plan = Plan(seed=5, seconds=12, faults=("kill",), work=("write",), settings={"a": "b"}, layout="combined")
    report = Report(plan, violation=Violation("a rule", "is broken\nin two lines"))
    line = line_to_keep(report)
    assert line == f"{arguments_of(plan)}    # a rule: is broken"
    assert line in explain(report)
    assert plan_of(arguments(shlex.split(line.split("#")[0]))) == plan


def test_kept_seeds_go_to_the_simulation_that_they_are_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = seeds.how_to_replay("quorum", "a test", 5, voters=3).splitlines()[-1].split(": ")[1]
    kept = tmp_path / "seeds.txt"
    kept.write_text(f"# why\n--seed 7 --nodes 3    # cluster\n{found}    # what it found\nquorum seed=6 voters=5\n")
    monkeypatch.setattr(seeds, "SEEDS_FILE", kept)
    assert seeds.kept_clusters() == ["--seed 7 --nodes 3"]
    assert seeds.kept_seeds("quorum", voters=3) == [5]
    assert seeds.kept_seeds("quorum", voters=5) == [6]
    assert seeds.kept_seeds("replication", replicas=3, min_isr=2) == []
