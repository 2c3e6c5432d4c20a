"""Waiting for a condition with a deadline: what tests do instead of sleeping for a while and hoping."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str, *, within_s: float = 60.0, every_s: float = 0.01) -> T:
    """The condition's first truthy value; TimeoutError with `what` when the deadline passes."""
    deadline = time.monotonic() + within_s
    while True:
        if value := condition():
            return value
        if time.monotonic() >= deadline:
            raise TimeoutError(f"waited {within_s:g} s for {what}")
        time.sleep(every_s)
