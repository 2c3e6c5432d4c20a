"""Aggregations of streams, without windows and in windows of fixed size; and of tables.

Records without key are dropped, and records without value where there are no windows. A window takes a record until
stream time has passed its end by the grace; then the record is dropped from it, and counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.windows import TimeWindows, Window, Windowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.interpret.folds import Folding
    from millstream.streams.interpret.stores import KeyValueState
    from millstream.streams.interpret.task import Task
    from millstream.streams.interpret.window_stores import WindowState

    TableStep = Callable[[Any, Any, Any, int, Any], None]
    StreamStep = Callable[[Any, Any, int, Any], None]


def stream_aggregate(
    task: Task, fold: Folding, store: KeyValueState, forward: TableStep, *, sends_old: bool
) -> StreamStep:
    """Per key, for ever."""
    start, add = fold.start, fold.add
    get, put = store.get_with_timestamp, store.put

    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None or value is None:
            task.drop("null key or value")
            return
        row = get(key)
        if row is None:
            old, time_ms = start(), timestamp
        else:
            old, old_ms = row
            time_ms = max(timestamp, old_ms)
        # The aggregator may have changed its argument in place: what goes on as the old value is read again.
        new = add(key, value, timestamp, old)
        if sends_old:
            old = start() if row is None else get(key)[0]  # type: ignore[index]
        put(key, new, time_ms)
        forward(key, new, old if sends_old else None, time_ms, headers)

    return process


def table_aggregate(fold: Folding, store: KeyValueState, forward: TableStep, *, sends_old: bool) -> TableStep:
    """What leaves the group is subtracted, then what enters is added."""

    def process(key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        row = store.get_with_timestamp(key)
        held = None if row is None else row[0]
        time_ms = timestamp
        between = held
        if old is not None and held is not None:
            between = fold.subtract(key, old, timestamp, held)
            time_ms = max(timestamp, row[1]) if row is not None else timestamp
        result = between
        if new is not None:
            result = fold.add(key, new, timestamp, fold.start() if between is None else between)
            if row is not None:
                time_ms = max(timestamp, row[1])
        before = None
        if sends_old and row is not None:
            before = store.get(key)
        store.put(key, result, time_ms)
        forward(key, result, before, time_ms, headers)

    return process


def window_aggregate(
    task: Task,
    windows: TimeWindows,
    fold: Folding,
    store: WindowState,
    forward: TableStep,
    *,
    sends_old: bool,
    final: bool,
) -> StreamStep:
    """Per key and window; with `final` a window's result goes on once, when it has closed."""
    size_ms, advance_ms, grace_ms = windows.size_ms, windows.advance_ms, windows.grace_ms
    start, add, get, put = fold.start, fold.add, store.get, store.put
    observed_ms = -1
    closing = Closing(store, size_ms, forward, inclusive=False)

    def load(kept: dict[bytes, Any]) -> None:
        nonlocal observed_ms
        observed_ms, closing.last_close_ms = kept.get(b"", (-1, None))

    task.keep(lambda: {b"": [observed_ms, closing.last_close_ms]}, load)

    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        nonlocal observed_ms
        if key is None:
            task.drop("null key")
            return
        observed_ms = max(observed_ms, timestamp)
        close_ms = observed_ms - grace_ms
        if final:
            closing.emit(close_ms, headers)
        start_ms = max(0, timestamp - size_ms + advance_ms) // advance_ms * advance_ms
        while start_ms <= timestamp:
            if start_ms + size_ms > close_ms:
                row = get(key, start_ms)
                if row is None:
                    old, time_ms = start(), timestamp
                else:
                    old, old_ms = row
                    time_ms = max(timestamp, old_ms)
                new = add(key, value, timestamp, old)
                if sends_old:
                    old = start() if row is None else get(key, start_ms)[0]  # type: ignore[index]
                put(key, new, start_ms, time_ms)
                if not final:
                    window = Windowed(key, Window(start_ms, start_ms + size_ms))
                    forward(window, new, old if sends_old else None, time_ms, headers)
            else:
                task.drop("late")
            start_ms += advance_ms

    return process


class Closing:
    """Final results: each window once, in the order of time, when stream time has passed it and its grace.

    They go out before the record that closes them is stored. Kafka Streams 4.3 stores it first, and loses windows that
    by then are older than the store's retention: after a pause in the stream longer than that.
    """

    def __init__(self, store: WindowState, size_ms: int, forward: TableStep, *, inclusive: bool) -> None:
        self._store = store
        self._size_ms = size_ms
        self._forward = forward
        self._inclusive = inclusive
        self.last_close_ms: int | None = None

    def emit(self, close_ms: int, headers: Any) -> None:
        if self.last_close_ms is not None and self.last_close_ms >= close_ms:
            return
        to_ms = close_ms - self._size_ms - (1 if self._inclusive else 0)
        if to_ms < 0:
            return
        from_ms = 0
        if self.last_close_ms is not None:
            from_ms = max(0, self.last_close_ms - self._size_ms + (0 if self._inclusive else 1))
        self.last_close_ms = close_ms
        for key, start_ms, value, time_ms in list(self._store.fetch_all_rows(from_ms, to_ms)):
            window = Windowed(key, Window(start_ms, start_ms + self._size_ms))
            self._forward(window, value, None, time_ms, headers)
