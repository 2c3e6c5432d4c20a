"""Where queries begin to read; and one whose source's Python was not there in time is started again.

No Spark here, what it says is made up.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

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


class Reader:
    """Keeps the options of a read."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    def format(self, _: str) -> Self:
        return self

    def options(self, **given: str) -> Self:
        self.given |= given
        return self

    def option(self, name: str, value: str) -> Self:
        self.given[name] = value
        return self

    def schema(self, _: str) -> Self:
        return self

    def load(self) -> Self:
        return self


def test_only_what_waits_in_internal_topics_is_never_skipped() -> None:
    """A topic of somebody else's may begin with the application's name."""
    builder = StreamsBuilder(key=str, value=str)
    builder.stream("app-in").repartition(name="mine").to("out")
    settings = settings_of("app", "nowhere:1", {"auto.offset.reset": "latest"})
    made: Any = running.Running(builder.build(), settings, None, guarantee="exactly_once_v2", trigger=None)
    engine = SimpleNamespace(format="", schema="", offsets_max=1)
    starts = {}
    for part in made._parts:
        reader = Reader()
        counts = {"app-in": 2, "app-mine-repartition": 1}
        made._read(SimpleNamespace(readStream=reader), part, engine, counts, {("app-in", 1): 7})
        starts |= json.loads(reader.given["startingOffsets"])
    latest, earliest = -1, -2
    assert starts == {"app-in": {"0": latest, "1": 7}, "app-mine-repartition": {"0": earliest}}
