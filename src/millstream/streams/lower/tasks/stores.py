"""The interpreter's stores, with a changelog: what has changed since it was last asked, and how a change is put back.

The bytes are those of Kafka Streams' changelogs: a window store's key is the key, the start and a number that tells
values of the same start apart; a session's is the key, the end and the start. A record's time is that of the value.
Where a window's has none it is that of the window's start, and never the task's: the changelog is trimmed by the times
that are in it (trimming.py), and a task may have records of another topic that are years ahead.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from millstream.streams.interpret.stores import KeyValueState
from millstream.streams.interpret.window_stores import SessionState, WindowState
from millstream.streams.plan.stores import KeyValueStore, SessionStore, Store, WindowStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.windows import Windowed

_WINDOW = struct.Struct(">qI")
_SESSION = struct.Struct(">qq")
_SEQUENCES = 1 << 32


class Change(NamedTuple):
    """A record for the changelog."""

    key: bytes
    value: bytes | None
    timestamp_ms: int


class LoggedKeyValues(KeyValueState):
    """A key-value store with a changelog."""

    def __init__(self, spec: KeyValueStore) -> None:
        super().__init__(spec)
        self._timestamped = spec.timestamped
        self._changed: dict[bytes, None] = {}

    def put(self, key: Any, value: Any, timestamp_ms: int = -1) -> None:
        row_key = self._to_key(key)
        self._changed[row_key] = None
        if value is None:
            self._rows.pop(row_key, None)
        else:
            self._rows[row_key] = (self._to_value(value), timestamp_ms)

    def delete(self, key: Any) -> Any:
        self._changed[self._to_key(key)] = None
        return super().delete(key)

    def changes(self) -> Iterator[Change]:
        """Each key that has changed, with what it has now; they count as written then."""
        changed, self._changed = self._changed, {}
        for row_key in changed:
            value, time_ms = self._rows.get(row_key, (None, -1))
            yield Change(row_key, value, time_ms)

    def put_back(self, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
        """A record of the changelog."""
        if value is None:
            self._rows.pop(key, None)
        else:
            self._rows[key] = (value, timestamp_ms if self._timestamped else -1)

    def held(self) -> Iterator[Change]:
        """All that is in it."""
        for row_key, (value, time_ms) in self._rows.items():
            yield Change(row_key, value, time_ms)


class LoggedWindows(WindowState):
    """A window store with a changelog."""

    def __init__(self, spec: WindowStore) -> None:
        super().__init__(spec)
        self._changed: dict[tuple[bytes, int], None] = {}
        self._added: list[Change] = []
        # Numbers of the entries of one start. They need not go on where others stopped: in a changelog of which all has
        # expired nobody finds the last one.
        self._sequence = 0
        # What this worker has put itself and will come again with the changelog.
        self._own: set[bytes] = set()

    def put(self, key: Any, value: Any, start_ms: int, timestamp_ms: int = -1) -> None:
        if start_ms < self._observed_ms - self._retention_ms:
            return
        super().put(key, value, start_ms, timestamp_ms)
        row_key = self._to_key(key)
        if not self._duplicates:
            self._changed[row_key, start_ms] = None
        elif value is not None:
            self._sequence = (self._sequence + 1) % _SEQUENCES
            place = row_key + _WINDOW.pack(start_ms, self._sequence)
            own_ms = timestamp_ms if timestamp_ms >= 0 else start_ms
            self._added.append(Change(place, self._by_key[row_key][start_ms][-1][0], own_ms))

    def changes(self) -> Iterator[Change]:
        added, self._added = self._added, []
        self._own.update(change.key for change in added)
        yield from added
        changed, self._changed = self._changed, {}
        oldest_ms = self._observed_ms - self._retention_ms
        for row_key, start_ms in changed:
            # What has expired goes by the topic's retention, as in Kafka Streams.
            if start_ms >= oldest_ms:
                rows = self._by_key.get(row_key, {}).get(start_ms)
                value, time_ms = rows[0] if rows else (None, -1)
                yield Change(row_key + _WINDOW.pack(start_ms, 0), value, time_ms if time_ms >= 0 else start_ms)

    def put_back(self, key: bytes, value: bytes | None, timestamp_ms: int) -> None:
        at = len(key) - _WINDOW.size
        start_ms, sequence = _WINDOW.unpack_from(key, at)
        if self._duplicates:
            if key in self._own:
                self._own.discard(key)
                return
            self._sequence = sequence
        held = None if value is None else self._from_value(value)
        super().put(self._from_key(key[:at]), held, start_ms, timestamp_ms)

    def caught_up(self) -> None:
        """All that this worker has put has come again by now, or has expired."""
        self._own.clear()

    def held(self) -> Iterator[Change]:
        """All that is in it, where there is one value for each key and window."""
        for row_key, windows in self._by_key.items():
            for start_ms, ((value, time_ms), *_) in windows.items():
                yield Change(row_key + _WINDOW.pack(start_ms, 0), value, time_ms)

    def __len__(self) -> int:
        # There are fewer starts than keys.
        return sum(len(keys) for keys in self._by_start.values())


class LoggedSessions(SessionState):
    """A session store with a changelog."""

    def __init__(self, spec: SessionStore) -> None:
        super().__init__(spec)
        self._changed: dict[tuple[bytes, int, int], None] = {}

    def put(self, session: Windowed, value: Any) -> None:
        super().put(session, value)
        start_ms, end_ms = session.window
        self._changed[self._to_key(session.key), end_ms, start_ms] = None

    def changes(self) -> Iterator[Change]:
        changed, self._changed = self._changed, {}
        for row_key, end_ms, start_ms in changed:
            value = self._by_key.get(row_key, {}).get((end_ms, start_ms))
            if value is not None or end_ms >= self._observed_ms - self._retention_ms:
                yield Change(row_key + _SESSION.pack(end_ms, start_ms), value, end_ms)

    def put_back(self, key: bytes, value: bytes | None, _timestamp_ms: int) -> None:
        from millstream.streams.windows import Window, Windowed

        end_ms, start_ms = _SESSION.unpack_from(key, len(key) - _SESSION.size)
        held = None if value is None else self._from_value(value)
        super().put(Windowed(self._from_key(key[: -_SESSION.size]), Window(start_ms, end_ms)), held)

    def held(self) -> Iterator[Change]:
        """All that is in it."""
        for row_key, sessions in self._by_key.items():
            for (end_ms, start_ms), value in sessions.items():
                yield Change(row_key + _SESSION.pack(end_ms, start_ms), value, end_ms)


LoggedStore = LoggedKeyValues | LoggedWindows | LoggedSessions


def logged_store(spec: Store) -> LoggedStore:
    """An empty store with a changelog."""
    if isinstance(spec, KeyValueStore):
        return LoggedKeyValues(spec)
    return LoggedWindows(spec) if isinstance(spec, WindowStore) else LoggedSessions(spec)
