"""A query whose source's Python was not there in time is started again. No Spark here, what it says is made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.spark import starting

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

STARTING = "Initializing sources"
LATE = "Python worker failed to connect back."
ACTIVE, ENDED = True, False


class Query:
    """Tells the next of its states at each look, and then the last for ever."""

    name = "app-0"

    def __init__(self, *states: tuple[bool, str], failure: str | None = None) -> None:
        self._states = list(states)
        self._failure = failure

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's name
        if len(self._states) > 1:
            self._states.pop(0)
        return self._states[0][0]

    @property
    def status(self) -> dict[str, str]:
        return {"message": self._states[0][1]}

    def exception(self) -> str | None:
        return None if self._states[0][0] else self._failure


def started(monkeypatch: pytest.MonkeyPatch, queries: Sequence[Query]) -> Query:
    waiting: Any = iter(queries)
    monkeypatch.setattr(starting, "_LOOK_S", 0)
    found: Any = starting.started(lambda: next(waiting))
    assert next(waiting, None) is None
    return found  # type: ignore[no-any-return]


def test_a_query_that_failed_is_seen_also_while_spark_still_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, fails = (ACTIVE, STARTING), (ACTIVE, f"Terminated with exception: {LATE}")
    failed = [
        Query(begins, begins, (ENDED, "Stopped"), failure=LATE),
        Query(begins, begins, fails, fails, (ENDED, fails[1]), failure=LATE),
    ]
    runs = Query(begins, begins, (ACTIVE, "Waiting for data to arrive"))
    assert started(monkeypatch, [*failed, runs]) is runs


def test_what_fails_for_another_reason_is_for_who_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = Query((ACTIVE, STARTING), (ENDED, "Terminated with exception: no such topic"), failure="no such topic")
    assert started(monkeypatch, [failed]) is failed


def test_one_that_never_comes_up_fails_with_spark_s_words(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = [Query((ACTIVE, STARTING), (ENDED, "Stopped"), failure=LATE) for _ in range(starting.STARTS)]
    assert started(monkeypatch, failed).exception() == LATE


def test_a_query_that_ended_well_is_not_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all that is there and no more, nothing may be left to do."""
    ended = Query((ACTIVE, STARTING), (ENDED, "Stopped"))
    assert started(monkeypatch, [ended]) is ended
