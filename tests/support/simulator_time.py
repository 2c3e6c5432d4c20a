"""How long the simulator had in a test run, and how many seeds it tried: a line at the end of every run.

Tests say how many seeds they tried with pytest's `record_property(SEEDS, [of what, count, seconds, which])`. That
travels with the report, so that it arrives from pytest-xdist's workers as well, whose own prints do not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

SEEDS = "simulated seeds"
PLACE = "tests/sim/"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = [
        report
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "nodeid", "").startswith(PLACE) and hasattr(report, "duration")
    ]
    if reports:
        terminalreporter.section("simulator")
        for line in summary(reports):
            terminalreporter.line(line)


def summary(reports: Iterable[pytest.TestReport]) -> list[str]:
    """What ran for how long in all, then seeds per hour of each kind."""
    seconds = 0.0
    tried: dict[str, tuple[int, float, list[str]]] = {}
    for report in reports:
        seconds += report.duration
        for name, value in report.user_properties:
            # Setup, call and teardown all carry the properties.
            if name == SEEDS and report.when == "call":
                what, count, took_s, which = value
                before, before_s, drawn = tried.get(what, (0, 0.0, []))
                tried[what] = (before + count, before_s + took_s, [*drawn, which] if which else drawn)
    lines = [f"{PLACE}: {seconds / 60:.1f} minutes"]
    for what, (count, took_s, drawn) in sorted(tried.items()):
        lines.append(f"{what}: {count:,} seeds in {took_s:.0f} s, {count / max(took_s, 0.001) * 3600:,.0f} per hour")
        if drawn:
            lines.append(f"  fresh: {', '.join(drawn)}")
    return lines
