"""Answers that come later: who is told, and that nothing of them stays."""

from __future__ import annotations

import gc
import weakref
from typing import TYPE_CHECKING

import pytest

from millstream.broker.dispatch import Deferred

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Poll:
    """Holds its answer, which calls it, as a waiting Fetch does."""

    def __init__(self) -> None:
        self.deferred = Deferred(on_abandon=self.stop)
        self.told: list[str] = []
        self.deferred.when_done(self.came)

    def came(self) -> None:
        self.told.append(f"came {self.deferred.response}")

    def stop(self) -> None:
        self.told.append("stopped")


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    yield
    if was_enabled:
        gc.enable()


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (lambda deferred: deferred.finish("answer"), ["came answer"]),
        (lambda deferred: deferred.abandon(), ["stopped"]),
    ],
)
def test_one_of_the_two_is_called_once_and_nothing_stays(end: Callable[[Deferred], None], told: list[str]) -> None:
    poll = Poll()
    heard = poll.told
    end(poll.deferred)
    poll.deferred.finish("late")
    poll.deferred.abandon()
    assert heard == told
    gone = weakref.ref(poll)
    del poll
    assert gone() is None
