"""Whatever fails when an application starts or ends, nothing of it stays; no Spark here, what it says is made up."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Self

import pytest

from millstream.streams import StreamsBuilder
from millstream.streams.lower import running
from millstream.streams.settings import settings_of


class Query:
    """One that runs until it is stopped; or whose JVM is gone, and with it every answer."""

    id = name = "app-0"

    def __init__(self, *, dead: bool = False, interrupted: bool = False) -> None:
        self.dead = dead
        self.interrupted = interrupted
        self.runs = True

    def _ask(self) -> None:
        if self.dead:
            raise ConnectionRefusedError("the JVM is gone")

    @property
    def isActive(self) -> bool:  # noqa: N802  # Spark's name
        self._ask()
        return self.runs

    @property
    def status(self) -> dict[str, object]:
        self._ask()
        if self.interrupted:
            self.interrupted = False
            raise KeyboardInterrupt
        return {"isTriggerActive": False, "message": "Waiting for data to arrive"}

    def exception(self) -> None:
        self._ask()

    def awaitTermination(self) -> None:  # noqa: N802  # Spark's name
        self._ask()

    def stop(self) -> None:
        self._ask()
        self.runs = False


class Beside:
    """What is closed when all has ended."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.closed = False

    def close(self) -> None:
        self.closed = True
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def made() -> Any:
    builder = StreamsBuilder()
    builder.stream("in").repartition().to("out")
    return running.Running(
        builder.build(), settings_of("app", "nowhere:1", {}), None, guarantee="exactly_once_v2", trigger=None
    )


@pytest.fixture
def beside(made: Any) -> list[Beside]:
    """The first cannot be closed properly."""
    made._beside = [Beside(OSError("no")), Beside()]
    made._all_started = True
    return list(made._beside)


def all_closed(beside: list[Beside]) -> bool:
    return all(each.closed for each in beside)


def test_a_stop_stops_all_and_closes_all(made: Any, beside: list[Beside]) -> None:
    made.queries = [Query(), Query()]
    made.stop()
    assert not made.is_active
    assert all_closed(beside)


def test_without_a_jvm_the_rest_is_let_go(made: Any, beside: list[Beside]) -> None:
    made.queries = [Query(dead=True), Query()]
    with pytest.raises(ConnectionRefusedError):
        made.stop()
    assert not made.queries[1].runs
    assert not made.is_active
    assert all_closed(beside)


def test_the_last_query_to_end_lets_go(made: Any, beside: list[Beside]) -> None:
    made.queries = [Query(dead=True)]
    with pytest.raises(OSError, match="the sink's connections"):
        made._close_after(made.queries[0], Beside(OSError("the sink's connections")))
    assert all_closed(beside)


def test_who_has_waited_finds_all_let_go(made: Any, beside: list[Beside]) -> None:
    made.queries = [Query()]
    assert not made.wait(0)
    assert not any(each.closed for each in beside)
    made.queries[0].runs = False
    assert made.wait(0)
    assert all_closed(beside)


def start(made: Any, monkeypatch: pytest.MonkeyPatch, *outcomes: Query | BaseException) -> list[Beside]:
    """With these as queries, or what is raised instead of one; what was started besides them."""
    waiting = iter(outcomes)
    beside = [Beside(), Beside()]

    def start_query(*_: object) -> Query:
        outcome = next(waiting)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(running, "SyncClient", NoClient)
    monkeypatch.setattr("millstream.spark.session", lambda: NoSpark)
    monkeypatch.setattr(made, "_committed", lambda *_: {})
    monkeypatch.setattr(made, "_start_beside", lambda: setattr(made, "_beside", list(beside)))
    monkeypatch.setattr(made, "_read", lambda *_: None)
    monkeypatch.setattr(made, "_start_query", start_query)
    made.start()
    return beside


def test_what_was_started_is_stopped_if_the_rest_cannot_be(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Query()
    with pytest.raises(ValueError, match="no such topic"):
        start(made, monkeypatch, first, ValueError("no such topic"))
    assert not first.runs
    assert made._beside == []


def test_one_that_is_interrupted_while_it_starts_is_stopped(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first, interrupted = Query(), Query(interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        start(made, monkeypatch, first, interrupted)
    assert not first.runs
    assert not interrupted.runs


def test_nothing_is_let_go_while_it_runs(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    queries = [Query(), Query()]
    beside = start(made, monkeypatch, *queries)
    assert made.queries == queries
    assert made.is_active
    assert not any(each.closed for each in beside)
    made.stop()
    assert all_closed(beside)


class NoClient:
    """Of a cluster that is content with everything, and has topics of one partition."""

    def __init__(self, _: object) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def run(self, *_: object) -> dict[str, int]:
        return defaultdict(lambda: 1)


class NoSpark:
    class dataSource:  # noqa: N801  # Spark's name
        @staticmethod
        def register(_: object) -> None: ...
