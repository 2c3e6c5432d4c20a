"""What every simulated test may use."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.support.simulator_time import SEEDS

Tried = Callable[..., None]


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Tried:
    """Says at the test's end that it has tried so many seeds of something, and which; the run's last lines tell."""
    began = time.monotonic()

    def note(what: str, count: int, which: str = "") -> None:
        record_property(SEEDS, [what, count, time.monotonic() - began, which])

    return note
