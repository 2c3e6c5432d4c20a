"""Session windows: a record joins the sessions within the gap around it into one.

Sessions that are merged away are deleted, with a tombstone under their old window; then the merged one is sent. A
result's time is the end of its session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.windows import Window, Windowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.interpret.folds import Folding
    from millstream.streams.interpret.task import Task
    from millstream.streams.interpret.window_stores import SessionState
    from millstream.streams.windows import SessionWindows

    TableStep = Callable[[Any, Any, Any, int, Any], None]


class SessionAggregate:
    """One aggregation in sessions."""

    def __init__(
        self,
        task: Task,
        windows: SessionWindows,
        fold: Folding,
        store: SessionState,
        forward: TableStep,
        *,
        sends_old: bool,
        final: bool,
    ) -> None:
        self._task = task
        self._gap_ms = windows.gap_ms
        self._close_after_ms = windows.close_after_ms
        self._fold = fold
        self._store = store
        self._forward = forward
        self._sends_old = sends_old
        self._final = final
        self._observed_ms = -1
        self._last_close_ms = 0
        task.keep(self._save, self._load)

    def _save(self) -> dict[bytes, Any]:
        return {b"": [self._observed_ms, self._last_close_ms]}

    def _load(self, kept: dict[bytes, Any]) -> None:
        self._observed_ms, self._last_close_ms = kept.get(b"", (-1, 0))

    def process(self, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None:
            self._task.drop("null key")
            return
        self._observed_ms = max(self._observed_ms, timestamp)
        close_ms = self._observed_ms - self._close_after_ms
        if self._final:
            self._emit_closed(close_ms, headers)
        aggregate = self._fold.start()
        start_ms = end_ms = timestamp
        for session, held in self._around(key, timestamp):
            aggregate = self._fold.merge(key, aggregate, held)
            start_ms = min(start_ms, session.window.start_ms)
            end_ms = max(end_ms, session.window.end_ms)
        if end_ms < close_ms:
            self._task.drop("late")
        else:
            if (start_ms, end_ms) != (timestamp, timestamp):
                self._remove_merged(key, timestamp, headers)
            aggregate = self._fold.add(key, value, timestamp, aggregate)
            session = Windowed(key, Window(start_ms, end_ms))
            self._store.put(session, aggregate)
            if not self._final:
                self._forward(session, aggregate, None, end_ms, headers)

    def _around(self, key: Any, timestamp: int) -> list[tuple[Windowed, Any]]:
        return self._store.find_sessions(key, timestamp - self._gap_ms, timestamp + self._gap_ms)

    def _remove_merged(self, key: Any, timestamp: int, headers: Any) -> None:
        # They are read again, since the merger may have changed what it was given.
        for session, held in self._around(key, timestamp):
            self._store.remove(session)
            if not self._final:
                old = held if self._sends_old else None
                self._forward(session, None, old, session.window.end_ms, headers)

    def _emit_closed(self, close_ms: int, headers: Any) -> None:
        if close_ms > self._last_close_ms:
            from_ms, self._last_close_ms = self._last_close_ms, close_ms
            for session, held in self._store.find_ended(from_ms, close_ms - 1):
                self._forward(session, held, None, session.window.end_ms, headers)
