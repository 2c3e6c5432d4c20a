"""Window and session stores of the driver.

What is older than the retention, counted back from the newest time that was put, cannot be read and is thrown away.
What is just as old is kept a moment longer: a final result may still be due.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from millstream.streams.windows import Window, Windowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.plan.stores import SessionStore, WindowStore


class WindowState:
    """Key and window start to value; with duplicates, to several values in the order in which they came."""

    def __init__(self, spec: WindowStore) -> None:
        self.name = spec.name
        self.size_ms = spec.size_ms
        self._retention_ms = spec.retention_ms
        self._duplicates = spec.duplicates
        self._observed_ms = -1
        self._by_key: dict[bytes, dict[int, list[tuple[bytes, int]]]] = {}
        self._by_start: dict[int, dict[bytes, None]] = {}
        self._starts: list[int] = []
        self._to_key = spec.key_serde.serialize
        self._from_key = spec.key_serde.deserialize
        self._to_value = spec.value_serde.serialize
        self._from_value = spec.value_serde.deserialize

    def put(self, key: Any, value: Any, start_ms: int, timestamp_ms: int = -1) -> None:
        """Null deletes, except where there are duplicates: there it is nothing."""
        if value is None and self._duplicates:
            return
        if start_ms > self._observed_ms:
            self._observed_ms = start_ms
            self._expire()
        elif start_ms < self._observed_ms - self._retention_ms:
            return
        row_key = self._to_key(key)
        if value is None:
            if self._by_key.get(row_key, {}).pop(start_ms, None) is not None:
                self._by_start[start_ms].pop(row_key, None)
            return
        windows = self._by_key.setdefault(row_key, {})
        row = (self._to_value(value), timestamp_ms)
        rows = windows.get(start_ms)
        if rows is None:
            windows[start_ms] = [row]
            if start_ms not in self._by_start:
                self._by_start[start_ms] = {}
                heapq.heappush(self._starts, start_ms)
            self._by_start[start_ms][row_key] = None
        elif self._duplicates:
            rows.append(row)
        else:
            rows[0] = row

    def _expire(self) -> None:
        oldest_ms = self._observed_ms - self._retention_ms
        while self._starts and self._starts[0] < oldest_ms:
            start_ms = heapq.heappop(self._starts)
            for row_key in self._by_start.pop(start_ms):
                windows = self._by_key[row_key]
                windows.pop(start_ms, None)
                if not windows:
                    del self._by_key[row_key]

    def copied(self, value: Any) -> Any:
        """The value as it would be read back."""
        return None if value is None else self._from_value(self._to_value(value))

    def get(self, key: Any, start_ms: int) -> tuple[Any, int] | None:
        """The value of one window, with its time."""
        rows = self._by_key.get(self._to_key(key), {}).get(start_ms)
        if start_ms <= self._observed_ms - self._retention_ms:
            return None
        return None if rows is None else (self._from_value(rows[0][0]), rows[0][1])

    def fetch_rows(self, key: Any, from_ms: int, to_ms: int, *, reverse: bool = False) -> list[tuple[int, Any, int]]:
        """(start, value, time) of a key's windows that start in this time, both ends included."""
        windows = self._by_key.get(self._to_key(key))
        if not windows:
            return []
        from_ms = max(from_ms, self._observed_ms - self._retention_ms + 1)
        found = []
        for start_ms in sorted((each for each in windows if from_ms <= each <= to_ms), reverse=reverse):
            found += [(start_ms, self._from_value(value), time_ms) for value, time_ms in windows[start_ms]]
        return found

    def fetch(self, key: Any, from_ms: int, to_ms: int | None = None) -> Any:
        """With one time the value of the window that starts then, with two (start, value) of all that start between."""
        if to_ms is None:
            found = self.get(key, from_ms)
            return None if found is None else found[0]
        return [(start_ms, value) for start_ms, value, _ in self.fetch_rows(key, from_ms, to_ms)]

    def fetch_all_rows(self, from_ms: int, to_ms: int) -> Iterator[tuple[Any, int, Any, int]]:
        """(key, start, value, time) of all windows that start in this time, by start, then key."""
        for start_ms in sorted(each for each in self._by_start if from_ms <= each <= to_ms):
            for row_key in sorted(self._by_start[start_ms]):
                for value, time_ms in self._by_key[row_key][start_ms]:
                    yield self._from_key(row_key), start_ms, self._from_value(value), time_ms

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """All windows that start in this time."""
        for key, start_ms, value, _ in self.fetch_all_rows(from_ms, to_ms):
            yield Windowed(key, Window(start_ms, start_ms + self.size_ms)), value

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        return self.fetch_all(-(2**63), 2**63)

    def __len__(self) -> int:
        return sum(len(windows) for windows in self._by_key.values())


class SessionState:
    """Key and session to value."""

    def __init__(self, spec: SessionStore) -> None:
        self.name = spec.name
        self._retention_ms = spec.retention_ms
        self._observed_ms = -1
        self._by_key: dict[bytes, dict[tuple[int, int], bytes]] = {}
        self._ends: list[tuple[int, bytes, int]] = []
        self._to_key = spec.key_serde.serialize
        self._from_key = spec.key_serde.deserialize
        self._to_value = spec.value_serde.serialize
        self._from_value = spec.value_serde.deserialize

    def put(self, session: Windowed, value: Any) -> None:
        """Null deletes."""
        start_ms, end_ms = session.window
        row_key = self._to_key(session.key)
        if end_ms > self._observed_ms:
            self._observed_ms = end_ms
            self._expire()
        if value is None:
            self._by_key.get(row_key, {}).pop((end_ms, start_ms), None)
        elif end_ms >= self._observed_ms - self._retention_ms:
            self._by_key.setdefault(row_key, {})[end_ms, start_ms] = self._to_value(value)
            heapq.heappush(self._ends, (end_ms, row_key, start_ms))

    def remove(self, session: Windowed) -> None:
        self.put(session, None)

    def _expire(self) -> None:
        oldest_ms = self._observed_ms - self._retention_ms
        while self._ends and self._ends[0][0] < oldest_ms:
            end_ms, row_key, start_ms = heapq.heappop(self._ends)
            sessions = self._by_key.get(row_key, {})
            sessions.pop((end_ms, start_ms), None)
            if not sessions:
                self._by_key.pop(row_key, None)

    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> list[tuple[Windowed, Any]]:
        """Sessions of a key that end at or after the one time and start at or before the other."""
        sessions = self._by_key.get(self._to_key(key))
        if not sessions:
            return []
        earliest_end_ms = max(earliest_end_ms, self._observed_ms - self._retention_ms + 1)
        return [
            (Windowed(key, Window(start_ms, end_ms)), self._from_value(sessions[end_ms, start_ms]))
            for end_ms, start_ms in sorted(sessions)
            if end_ms >= earliest_end_ms and start_ms <= latest_start_ms
        ]

    def find_ended(self, from_end_ms: int, to_end_ms: int) -> list[tuple[Windowed, Any]]:
        """Sessions of all keys that end in this time, by end, start and key."""
        found = sorted(
            (end_ms, start_ms, row_key)
            for row_key, sessions in self._by_key.items()
            for end_ms, start_ms in sessions
            if from_end_ms <= end_ms <= to_end_ms
        )
        return [
            (
                Windowed(self._from_key(row_key), Window(start_ms, end_ms)),
                self._from_value(self._by_key[row_key][end_ms, start_ms]),
            )
            for end_ms, start_ms, row_key in found
        ]

    def fetch(self, key: Any) -> list[tuple[Windowed, Any]]:
        """All sessions of a key."""
        return self.find_sessions(key, -(2**63), 2**63)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        for row_key in sorted(self._by_key):
            yield from self.fetch(self._from_key(row_key))

    def __len__(self) -> int:
        return sum(len(sessions) for sessions in self._by_key.values())
