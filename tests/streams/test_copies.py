"""Copies for interactive queries keep as much of windows and sessions as their changelog does."""

from __future__ import annotations

from typing import Any

from millstream.streams import LONG_SERDE, STRING_SERDE, StreamsBuilder, session, tumbling
from millstream.streams.queries import copy_of
from millstream.streams.queries.copies import SessionCopy, WindowCopy
from millstream.streams.serdes import SessionWindowedSerde, TimeWindowedSerde
from millstream.streams.windows import Window, Windowed

DAY_MS = 86_400_000


def window(key: str, start_ms: int) -> bytes:
    return TimeWindowedSerde(STRING_SERDE, 10).serialize(Windowed(key, Window(start_ms, start_ms + 10)))


def grown(key: str, start_ms: int, end_ms: int) -> bytes:
    return SessionWindowedSerde(STRING_SERDE).serialize(Windowed(key, Window(start_ms, end_ms)))


def starts(copy: WindowCopy, key: str) -> list[int]:
    return [found.start_ms for found, _ in copy.fetch(key, 0, 10**15)]


def test_windows_that_are_older_than_the_retention_are_dropped() -> None:
    copy = WindowCopy(STRING_SERDE, LONG_SERDE, 10, retention_ms=100)
    for start_ms in range(0, 1_000, 10):
        copy.apply(window("a", start_ms), bytes(8))
        copy.apply(window("b", start_ms), bytes(8))
    assert starts(copy, "a") == starts(copy, "b") == list(range(890, 1_000, 10))
    copy.apply(window("a", 500), bytes(8))
    assert len(copy) == 22, "what comes too late is not taken"
    copy.apply(window("c", 5_000), None)
    assert len(copy) == 0
    assert not copy._rows, "nor is a key kept without windows"


def test_each_partition_has_its_own_time() -> None:
    copy = WindowCopy(STRING_SERDE, LONG_SERDE, 10, retention_ms=100)
    copy.apply(window("behind", 0), bytes(8), 0)
    copy.apply(window("ahead", 1_000), bytes(8), 1)
    copy.apply(window("behind", 50), bytes(8), 0)
    assert starts(copy, "behind") == [0, 50]


def test_deleted_windows_may_come_again() -> None:
    copy = WindowCopy(STRING_SERDE, LONG_SERDE, 10, retention_ms=100)
    for value in (bytes(8), None, bytes(8)):
        copy.apply(window("a", 0), value)
    assert starts(copy, "a") == [0]
    copy.apply(window("a", 200), bytes(8))
    assert starts(copy, "a") == [200]


def test_sessions_go_by_their_end() -> None:
    copy = SessionCopy(STRING_SERDE, LONG_SERDE, retention_ms=100)
    copy.apply(grown("a", 0, 150), bytes(8))
    copy.apply(grown("a", 0, 40), bytes(8))
    copy.apply(grown("b", 200, 220), bytes(8))
    assert copy.fetch("a") == [(Window(0, 150), 0)]
    copy.apply(grown("b", 300, 300), bytes(8))
    assert copy.fetch("a") == []
    assert len(copy) == 2


def test_a_session_that_grows_leaves_no_more_behind_than_it_may() -> None:
    copy = SessionCopy(STRING_SERDE, LONG_SERDE, retention_ms=DAY_MS)
    copy.apply(grown("quiet", 0, 0), bytes(8))
    for end_ms in range(1, 20_000):
        copy.apply(grown("a", 0, end_ms - 1), None)
        copy.apply(grown("a", 0, end_ms), bytes(8))
    assert len(copy) == 2
    assert len(copy._ages._places[0]) <= 2 * len(copy) + 1_000
    copy.apply(grown("b", DAY_MS, DAY_MS + 1), bytes(8))
    assert copy.fetch("quiet") == [], "what has been looked through still goes by its age"
    assert copy.fetch("a") == [(Window(0, 19_999), 0)]
    copy.apply(grown("b", DAY_MS, DAY_MS + 20_000), bytes(8))
    assert copy.fetch("a") == []


def test_windows_that_come_and_go_leave_no_more_behind_than_they_may() -> None:
    copy = WindowCopy(STRING_SERDE, LONG_SERDE, 10, retention_ms=DAY_MS)
    for _ in range(3_000):
        copy.apply(window("a", 0), bytes(8))
        copy.apply(window("a", 0), None)
    copy.apply(window("a", 0), bytes(8))
    assert starts(copy, "a") == [0]
    assert len(copy._ages._places[0]) <= 1_002


def test_a_store_is_kept_for_its_retention_and_a_day() -> None:
    builder = StreamsBuilder(key=str, value=str)
    grouped = builder.stream("in").group_by_key()
    grouped.windowed_by(tumbling(10, grace_ms=5)).count(store="windows")
    grouped.windowed_by(session(7, grace_ms=5)).count(store="sessions")
    stores = builder.build().plan.stores
    windows: Any = copy_of(stores["windows"])
    windows.apply(window("a", 0) + bytes(4), bytes(8))
    windows.apply(window("b", DAY_MS + 15) + bytes(4), bytes(8))
    assert len(windows) == 2
    windows.apply(window("b", DAY_MS + 20) + bytes(4), bytes(8))
    assert starts(windows, "a") == []
    sessions: Any = copy_of(stores["sessions"])
    sessions.apply(grown("a", 0, 1), bytes(8))
    sessions.apply(grown("b", 5, 2 * DAY_MS), bytes(8))
    assert len(sessions) == 1
