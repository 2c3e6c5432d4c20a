"""Sliding windows: for each record the window that ends at it, and the one that starts just behind it.

A window is stored under its start and holds the records of [start, start + difference]. A new record goes into every
stored window that covers it, may need a window of its own to the left, and may give its predecessor and itself windows
to the right. Windows whose end lies before the close of the grace are not touched. The order of results is Kafka
Streams' with stores that can be read backwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.interpret.aggregating import Closing
from millstream.streams.windows import SlidingWindows, Window, Windowed

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.interpret.folds import Folding
    from millstream.streams.interpret.task import Task
    from millstream.streams.interpret.window_stores import WindowState

    TableStep = Callable[[Any, Any, Any, int, Any], None]

Held = tuple[Any, int]


class SlidingAggregate:
    """One aggregation in sliding windows."""

    def __init__(
        self,
        task: Task,
        windows: SlidingWindows,
        fold: Folding,
        store: WindowState,
        forward: TableStep,
        *,
        sends_old: bool,
        final: bool,
    ) -> None:
        self._task = task
        self._difference_ms = windows.difference_ms
        self._grace_ms = windows.grace_ms
        self._fold = fold
        self._store = store
        self._forward = forward
        self._sends_old = sends_old
        self._closing = Closing(store, windows.difference_ms, forward, inclusive=True) if final else None
        self._observed_ms = -1
        task.keep(self._save, self._load)

    def _save(self) -> dict[bytes, Any]:
        return {b"": [self._observed_ms, None if self._closing is None else self._closing.last_close_ms]}

    def _load(self, kept: dict[bytes, Any]) -> None:
        self._observed_ms, closed_ms = kept.get(b"", (-1, None))
        if self._closing is not None:
            self._closing.last_close_ms = closed_ms

    def process(self, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None or value is None:
            self._task.drop("null key or value")
            return
        self._observed_ms = max(self._observed_ms, timestamp)
        close_ms = self._observed_ms - self._grace_ms
        if self._closing is not None:
            self._closing.emit(close_ms, headers)
        if timestamp + 1 + self._difference_ms <= close_ms:
            self._task.drop("late")
        else:
            record = _Record(key, value, timestamp, headers, close_ms)
            if timestamp < self._difference_ms:
                self._process_early(record)
            else:
                self._process_reverse(record)

    def _process_reverse(self, record: _Record) -> None:
        at, difference_ms = record.timestamp, self._difference_ms
        starts: set[int] = set()
        left: Held | None = None
        right: Held | None = None
        left_exists = right_exists = False
        previous: int | None = None
        rows = self._store.fetch_rows(record.key, max(0, at - 2 * difference_ms), at + 1, reverse=True)
        for start_ms, held, time_ms in rows:
            starts.add(start_ms)
            end_ms = start_ms + difference_ms
            if start_ms == at + 1:
                right_exists = True
            elif end_ms > at:
                if right is None:
                    right = self._again(record.key, start_ms)
                self._update(record, start_ms, (held, time_ms))
            elif end_ms == at:
                left_exists = True
                self._update(record, start_ms, (held, time_ms))
                if time_ms < at:
                    previous = time_ms
                else:
                    return
            else:
                left, previous = (held, time_ms), time_ms
                break
        self._create(record, starts, left, right, previous, left_exists=left_exists, right_exists=right_exists)

    def _again(self, key: Any, start_ms: int) -> Held | None:
        """A copy of its own: an aggregator may change what it is given."""
        return self._store.get(key, start_ms)

    def _create(
        self,
        record: _Record,
        starts: set[int],
        left: Held | None,
        right: Held | None,
        previous: int | None,
        *,
        left_exists: bool,
        right_exists: bool,
    ) -> None:
        at, difference_ms = record.timestamp, self._difference_ms
        if previous is not None and previous + 1 not in starts and previous + 1 + difference_ms >= at:
            self._update(record, previous + 1, (self._fold.start(), at))
        if not left_exists:
            near = previous is not None and at - difference_ms <= previous
            held = left[0] if near and left is not None else self._fold.start()
            self._update(record, at - difference_ms, (held, at))
        if not right_exists and right is not None and right[1] > at:
            self._put_right(record, right)

    def _process_early(self, record: _Record) -> None:
        """Before one whole difference has passed since 0: the leftmost window is [0, difference] for all of them."""
        at = record.timestamp
        starts: set[int] = set()
        combined: Held | None = None
        right: Held | None = None
        right_exists = False
        previous: int | None = None
        for start_ms, held, time_ms in self._store.fetch_rows(record.key, 0, at + 1):
            starts.add(start_ms)
            if start_ms == 0:
                combined = (held, time_ms)
                if time_ms < at:
                    previous = time_ms
            elif start_ms <= at:
                right = self._again(record.key, start_ms)
                self._update(record, start_ms, (held, time_ms))
            else:
                right_exists = True
        if right is None and combined is not None and combined[1] > at:
            right = self._again(record.key, 0)
        if not right_exists and right is not None and right[1] > at:
            self._put_right(record, right)
        if previous is not None and previous + 1 not in starts:
            self._update(record, previous + 1, (self._fold.start(), at))
        self._update(record, 0, (self._fold.start(), at) if combined is None else combined)

    def _put_right(self, record: _Record, held: Held) -> None:
        start_ms = record.timestamp + 1
        self._store.put(record.key, held[0], start_ms, held[1])
        if self._closing is None:
            window = Window(start_ms, start_ms + self._difference_ms)
            self._forward(Windowed(record.key, window), held[0], None, held[1], record.headers)

    def _update(self, record: _Record, start_ms: int, held: Held) -> None:
        end_ms = start_ms + self._difference_ms
        if end_ms < record.close_ms:
            self._task.drop("late")
            return
        before, before_ms = held
        time_ms = record.timestamp if before is None else max(record.timestamp, before_ms)
        # The old value is what the window starts from, also where it is new and starts from another one's: Kafka
        # Streams sends it so. A copy, since an aggregator may change what it is given.
        old = self._store.copied(before) if self._sends_old else None
        new = self._fold.add(record.key, record.value, record.timestamp, before)
        self._store.put(record.key, new, start_ms, time_ms)
        if self._closing is None:
            self._forward(Windowed(record.key, Window(start_ms, end_ms)), new, old, time_ms, record.headers)


class _Record:
    __slots__ = ("close_ms", "headers", "key", "timestamp", "value")

    def __init__(self, key: Any, value: Any, timestamp: int, headers: Any, close_ms: int) -> None:
        self.key = key
        self.value = value
        self.timestamp = timestamp
        self.headers = headers
        self.close_ms = close_ms
