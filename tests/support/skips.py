"""Where everything is required, a test that does not run has failed: no skip gets around MILLSTREAM_REQUIRE_ALL=1.

The hooks look at reports, so it makes no difference how a test was skipped: `pytest.skip`, a mark, `importorskip`, a
module that skips itself, an empty list of parameters or an `xfail`. tests/conftest.py takes them over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import pytest

from tests.support.requirements import everything_required

if TYPE_CHECKING:
    from collections.abc import Generator

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that was skipped, or that is expected to fail."""
    report = yield
    return _failed_if_skipped(report)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A module that was skipped as a whole."""
    report = yield
    return _failed_if_skipped(report)


def _failed_if_skipped(report: Report) -> Report:
    if report.skipped and everything_required():
        report.outcome = "failed"
        report.longrepr = f"{_reason(report)} (MILLSTREAM_REQUIRE_ALL is set: a skip is a failure)"
        vars(report).pop("wasxfail", None)
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        path, line, reason = report.longrepr
        return f"{path}:{line}: {reason}"
    return str(report.longrepr)
