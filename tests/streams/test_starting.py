"""A query whose source's Python was not there in time is started again; no Spark here, what it says is made up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams import StreamsBuilder
from millstream.streams.lower import running
from millstream.streams.settings import settings_of

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
    builder = StreamsBuilder()
    builder.stream("in").to("out")
    made = running.Running(
        builder.build(), settings_of("app", "nowhere:1", {}), None, guarantee="exactly_once_v2", trigger=None
    )
    waiting = iter(queries)
    monkeypatch.setattr(made, "_start_query", lambda *_: next(waiting))
    monkeypatch.setattr(running, "_LOOK_S", 0)
    nothing: Any = None
    found: Any = made._started(nothing, nothing, nothing, nothing, nothing)
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
