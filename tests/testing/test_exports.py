"""`millstream.testing` has by name what a program's own tests need."""

from __future__ import annotations

import subprocess
import sys

import pytest

import millstream.testing
from millstream.testing.loop import VirtualLoop
from millstream.testing.trace import Trace
from tests.support.requirements import PROJECT_ROOT


@pytest.mark.parametrize("name", millstream.testing.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(millstream.testing, name).__name__ == name


def test_other_names_are_not() -> None:
    with pytest.raises(AttributeError, match="Simulator"):
        millstream.testing.Simulator  # noqa: B018  # asking is what is tested


def test_a_history_is_checked_without_a_broker() -> None:
    program = (
        "import sys; from millstream.testing import History, check; "
        "assert check(History()) == []; assert 'millstream.broker' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=PROJECT_ROOT / "src", timeout=120)


def test_the_last_events_can_be_sliced() -> None:
    trace = Trace(VirtualLoop())
    for number in range(500):
        trace.note("here", f"event {number}")
    assert [line.rpartition(": ")[2] for line in trace.last[-2:]] == ["event 498", "event 499"]
    assert len(trace.last) == 400
