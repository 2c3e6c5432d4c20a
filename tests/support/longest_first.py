"""Files that take long are started first, so that no worker ends a run alone with the longest of them.

`durations.json` says how many seconds each slow file took the last time somebody wrote it down:

    MILLSTREAM_RECORD_DURATIONS=1 make test-all

Files that it does not know come after those, in the random order that they are in. It is a hint, nothing depends on it.
"""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

DURATIONS = Path(__file__).with_name("durations.json")
# Shorter files fill the gaps in any order.
WORTH_KNOWING_S = 5


class LongestFirst:
    """Sorts the files of a run, and writes down how long they took where that is asked for."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = json.loads(DURATIONS.read_text())
        items.sort(key=lambda item: -known.get(file_of(item.nodeid), 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if os.environ.get("MILLSTREAM_RECORD_DURATIONS"):
            reports = [each for reports in terminalreporter.stats.values() for each in reports]
            known = json.loads(DURATIONS.read_text())
            taken = taken_by_files(each for each in reports if isinstance(each, pytest.TestReport))
            DURATIONS.write_text(json.dumps(merged(known, taken), indent=2) + "\n")


def file_of(node_id: str) -> str:
    return node_id.split("::", maxsplit=1)[0]


def taken_by_files(reports: Iterable[pytest.TestReport]) -> dict[str, int]:
    """Seconds of each file, setup and teardown included."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in reports:
        seconds[file_of(report.nodeid)] += report.duration
    return {file: round(taken) for file, taken in seconds.items()}


def merged(known: dict[str, int], taken: dict[str, int]) -> dict[str, int]:
    """What is known by now, the longest first; files that are gone are forgotten."""
    worth = {file: taken_s for file, taken_s in (known | taken).items() if taken_s >= WORTH_KNOWING_S}
    there = {file: taken_s for file, taken_s in worth.items() if Path(file).exists()}
    return dict(sorted(there.items(), key=lambda each: (-each[1], each[0])))
