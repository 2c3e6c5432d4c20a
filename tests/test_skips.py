"""Where everything is required no test gets away without running, however it was skipped."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.requirements import PROJECT_ROOT

if TYPE_CHECKING:
    from pathlib import Path

HOOKS = "from tests.support.skips import pytest_make_collect_report, pytest_runtest_makereport"
WAYS = {
    "a call": "def test_it(): pytest.skip('no')",
    "a call in a fixture": "@pytest.fixture\ndef broken(): pytest.skip('no')\ndef test_it(broken): ...",
    "a mark": "@pytest.mark.skip\ndef test_it(): ...",
    "a condition": "@pytest.mark.skipif(True, reason='no')\ndef test_it(): ...",
    "a parameter's mark": (
        "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.skip('no'))])\ndef test_it(x): ..."
    ),
    "no parameters": "@pytest.mark.parametrize('x', [])\ndef test_it(x): ...",
    "a module that is missing": "pytest.importorskip('no_such_module')\ndef test_it(): ...",
    "a module that skips itself": "pytest.skip('no', allow_module_level=True)",
    "unittest's exception": "import unittest\ndef test_it(): raise unittest.SkipTest('no')",
    "an expected failure": "@pytest.mark.xfail(run=False)\ndef test_it(): ...",
}


def outcomes(folder: Path, required: str) -> dict[str, str]:
    """One run of all of them: how each ended, with all that was printed in the end."""
    (folder / "conftest.py").write_text(f"{HOOKS}\n")
    for number, text in enumerate(WAYS.values()):
        (folder / f"test_{number}.py").write_text(f"import pytest\n{text}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "-c", os.devnull]
    done = subprocess.run(
        [*command, "-rA", "--continue-on-collection-errors", "--rootdir", str(folder), str(folder)],
        cwd=folder,
        env=os.environ | {"MILLSTREAM_REQUIRE_ALL": required, "PYTHONPATH": str(PROJECT_ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    summary = done.stdout.rpartition("short test summary info")[2]
    ended = re.findall(r"^(\w+) (?:\[\d+\] )?test_(\d+)\.py", summary, re.MULTILINE)
    assert (done.returncode != 0) == bool(required), done.stdout + done.stderr
    return {list(WAYS)[int(number)]: outcome for outcome, number in ended}


def test_every_skip_is_a_failure_where_everything_is_required(tmp_path: Path) -> None:
    ended = outcomes(tmp_path, "1")
    assert ended.keys() == WAYS.keys()
    assert set(ended.values()) <= {"FAILED", "ERROR"}, ended


def test_a_skip_stays_a_skip_elsewhere(tmp_path: Path) -> None:
    assert "SKIPPED" in outcomes(tmp_path, "").values()
