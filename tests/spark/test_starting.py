"""A query whose source's Python was not there in time is started again. No Spark here, what it says is made up."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

from millstream.spark import starting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

STARTING = "Initializing sources"
LATE = "Python worker failed to connect back."
ACTIVE, ENDED = True, False


class Query:
    """Tells the next of its states at each look, and then the last for ever."""

    name = "app-0"
    runId = "this run"  # noqa: N815  # Spark's name, as those below

    def __init__(self, *states: tuple[bool, str], failure: str | None = None) -> None:
        self._states = list(states)
        self._failure = failure
        self.is_stopped = False

    @property
    def isActive(self) -> bool:  # noqa: N802
        if len(self._states) > 1:
            self._states.pop(0)
        return self._states[0][0]

    @property
    def status(self) -> dict[str, str]:
        return {"message": self._states[0][1]}

    def exception(self) -> str | None:
        return None if self._states[0][0] else self._failure

    def stop(self) -> None:
        self.is_stopped = True


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


# -- who waits for an end of any query

ENDED_WELL = ""


class Session:
    """Keeps one end of a query, as Spark does: the first, and then each that is a failure."""

    def __init__(self, last: str | None, *running: str) -> None:
        self.last = last
        self.running = set(running)

    def sparkSession(self) -> Session:  # noqa: N802
        return self

    streams = sparkSession

    @property
    def active(self) -> list[Run]:
        return [Run(each) for each in self.running]

    def ends(self, run: str, failure: str = ENDED_WELL) -> None:
        self.running.discard(run)
        if self.last is None or failure:
            self.last = failure

    def awaitAnyTermination(self, _: float) -> bool:  # noqa: N802
        if self.last:
            raise StreamingQueryException(self.last)
        return self.last is not None

    def resetTerminated(self) -> None:  # noqa: N802
        self.last = None


class Run:
    def __init__(self, run_id: str) -> None:
        self.runId = run_id


class Late(Query):
    """Fails as it is looked at; whatever else ends meanwhile ends before or after it."""

    def __init__(self, session: Session, *, before: str | None = None, after: str | None = None) -> None:
        super().__init__((ACTIVE, STARTING), (ENDED, "Stopped"), failure=LATE)
        self._jsq, self._before, self._after = session, before, after
        session.running.add(self.runId)

    @property
    def isActive(self) -> bool:  # noqa: N802
        if self.runId in self._jsq.running:
            if self._before is not None:
                self._jsq.ends("other", self._before)
            self._jsq.ends(self.runId, f"Query [runId = {self.runId}] {LATE}")
            if self._after is not None:
                self._jsq.ends("other", self._after)
        return super().isActive


@pytest.mark.parametrize(
    ("last", "before", "after", "known"),
    [
        (None, None, None, None),
        ("other: no such topic", None, None, LATE),
        (ENDED_WELL, None, None, LATE),
        (None, ENDED_WELL, None, LATE),
        (None, None, "other: no such topic", "other: no such topic"),
    ],
    ids=["alone", "another failed", "another ended", "another ends meanwhile", "another fails meanwhile"],
)
def test_an_attempt_that_is_repeated_is_forgotten_but_no_other_end(
    last: str | None, before: str | None, after: str | None, known: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where another query has ended, too, whoever waits for any of them must not go on waiting."""
    monkeypatch.setattr(starting, "StreamingQueryManager", lambda session: session)
    session = Session(last, "other")
    runs = Query((ACTIVE, "Waiting for data to arrive"))
    assert started(monkeypatch, [Late(session, before=before, after=after), runs]) is runs
    assert session.last is None if known is None else known in str(session.last)


# -- Ctrl-C


class Interrupting(Query):
    """Ctrl-C is hit in the middle of a talk with it."""

    def __init__(self) -> None:
        super().__init__((ACTIVE, STARTING), (ACTIVE, STARTING), (ACTIVE, "Waiting for data to arrive"))
        self.talks: list[str] = []

    @property
    def status(self) -> dict[str, str]:
        self.talks.append("begins")
        signal.raise_signal(signal.SIGINT)
        self.talks.append("ends")
        return super().status


@pytest.fixture
def handled_by() -> Iterator[Callable[[Any], Any]]:
    theirs = signal.getsignal(signal.SIGINT)
    yield lambda handler: signal.signal(signal.SIGINT, handler)
    signal.signal(signal.SIGINT, theirs)


def test_who_is_interrupted_leaves_no_query_behind(
    monkeypatch: pytest.MonkeyPatch, handled_by: Callable[[Any], Any]
) -> None:
    handled_by(signal.default_int_handler)
    query = Interrupting()
    with pytest.raises(KeyboardInterrupt):
        started(monkeypatch, [query])
    assert query.is_stopped
    assert query.talks == ["begins", "ends"], "no answer was left for the next question"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_the_query_is_there_stops_it_too(handled_by: Callable[[Any], Any]) -> None:
    handled_by(signal.default_int_handler)
    query: Any = Query((ACTIVE, STARTING))

    def start() -> Any:
        signal.raise_signal(signal.SIGINT)
        return query

    with pytest.raises(KeyboardInterrupt):
        starting.started(start)
    assert query.is_stopped


def test_a_second_ctrl_c_does_not_wait(handled_by: Callable[[Any], Any]) -> None:
    handled_by(signal.default_int_handler)

    def start() -> Any:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        pytest.fail("it never comes back")

    with pytest.raises(KeyboardInterrupt):
        starting.started(start)


def test_a_handler_that_only_notes_it_lets_the_query_start(
    monkeypatch: pytest.MonkeyPatch, handled_by: Callable[[Any], Any]
) -> None:
    noted: list[int] = []
    handled_by(lambda number, _: noted.append(number))
    query = Interrupting()
    assert started(monkeypatch, [query]) is query
    assert (noted, query.is_stopped) == ([signal.SIGINT] * len(query.talks[::2]), False)
