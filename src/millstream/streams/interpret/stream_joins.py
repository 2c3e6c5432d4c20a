"""Joins of two streams: within the window every pair goes out once, when the later of the two has come.

In a left or outer join a record without a partner is kept until its window has closed, and then goes out with null; a
record that comes so late that its window has closed already goes out at once. Kafka Streams looks for such records at
most once a second of wall-clock time; the driver looks with every record that moves stream time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from struct import Struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.interpret.task import Task
    from millstream.streams.interpret.window_stores import WindowState
    from millstream.streams.plan.nodes import StreamJoin

    StreamStep = Callable[[Any, Any, int, Any], None]
    Joiner = Callable[[Any, Any, int, Any], Any]


_NEVER_MS = 2**63
_PLACE = Struct(">qB")


class SharedJoin:
    """What both sides of one join know: the joiner, stream time, and who waits for a partner."""

    def __init__(
        self, task: Task, node: StreamJoin, joiner: Joiner, stores: tuple[WindowState, WindowState], forward: StreamStep
    ) -> None:
        self.task = task
        self.node = node
        self.joiner = joiner
        self.stores = stores
        self.forward = forward
        self.stream_time_ms = -1
        # (time, 0 for the right side and 1 for the left, key's bytes) -> (key, values): the order of Kafka's store
        self._waiting: dict[tuple[int, int, bytes], tuple[Any, list[Any]]] = {}
        self._order: list[tuple[int, int, bytes]] = []
        self._earliest_ms = _NEVER_MS
        self._to_key = node.this_store.key_serde.serialize
        task.keep(self._save, self._load)

    def _save(self) -> dict[bytes, Any]:
        """Stream time, and everybody who waits, under time, side and key."""
        to_value = (self.node.other_store.value_serde.serialize, self.node.this_store.value_serde.serialize)
        kept: dict[bytes, Any] = {b"": [self.stream_time_ms, min(self._earliest_ms, _NEVER_MS - 1)]}
        for (time_ms, side, row_key), (_, values) in self._waiting.items():
            kept[_PLACE.pack(time_ms, side) + row_key] = [to_value[side](value) for value in values]
        return kept

    def _load(self, kept: dict[bytes, Any]) -> None:
        left, right = self.node.this_store, self.node.other_store
        from_value = (right.value_serde.deserialize, left.value_serde.deserialize)
        self.stream_time_ms, earliest_ms = kept.get(b"", (-1, _NEVER_MS - 1))
        self._earliest_ms = _NEVER_MS if earliest_ms == _NEVER_MS - 1 else earliest_ms
        self._waiting = {}
        for place, values in kept.items():
            if place:
                time_ms, side = _PLACE.unpack_from(place)
                row_key = place[_PLACE.size :]
                held = [from_value[side](value) for value in values]
                self._waiting[time_ms, side, row_key] = (left.key_serde.deserialize(row_key), held)
        self._order = sorted(self._waiting)

    def wait(self, key: Any, value: Any, timestamp: int, *, is_left: bool) -> None:
        self._earliest_ms = min(self._earliest_ms, timestamp)
        place = (timestamp, int(is_left), self._to_key(key))
        if place in self._waiting:
            self._waiting[place][1].append(value)
        else:
            self._waiting[place] = (key, [value])
            insort(self._order, place)

    def found_partner(self, key: Any, timestamp: int, *, is_left: bool) -> None:
        place = (timestamp, int(is_left), self._to_key(key))
        if place in self._waiting:
            del self._waiting[place]
            del self._order[bisect_left(self._order, place)]

    def emit_unpaired(self, after_ms: int, headers: Any) -> None:
        """Everything whose window has closed, in the order of time; `after_ms` is that of the side which looks.

        Whether anything may be due is told from one time only, which after a look is that of the last record looked
        at. So a result may come later than it could: as in Kafka Streams, where it saves reading a store.
        """
        windows = self.node.windows
        if self._earliest_ms + after_ms + windows.grace_ms >= self.stream_time_ms:
            return
        self._earliest_ms = _NEVER_MS
        open_for_ms = (windows.before_ms + windows.grace_ms, windows.after_ms + windows.grace_ms)
        open_sides: set[int] = set()
        closed: set[tuple[int, int, bytes]] = set()
        for place in self._order:
            for value in self._waiting[place][1]:
                self._earliest_ms, side, _ = place
                if len(open_sides) == 2:
                    break
                if self._earliest_ms + open_for_ms[side] >= self.stream_time_ms:
                    open_sides.add(side)
                else:
                    closed.add(place)
                    self._emit(place, value, headers)
            else:
                continue
            break
        if closed:
            self._order = [place for place in self._order if place not in closed]
            self._waiting = {place: self._waiting[place] for place in self._order}

    def _emit(self, place: tuple[int, int, bytes], value: Any, headers: Any) -> None:
        timestamp, side, _ = place
        key = self._waiting[place][0]
        joined = self.joiner(key, value, timestamp, None) if side else self.joiner(key, None, timestamp, value)
        self.forward(key, joined, timestamp, headers)


class JoinSide:
    """What one side does with a record: look for partners among the other's, then remember it for them."""

    def __init__(self, shared: SharedJoin, *, is_left: bool) -> None:
        self._shared = shared
        self._is_left = is_left
        self._own, self._other = shared.stores if is_left else shared.stores[::-1]
        windows, kind = shared.node.windows, shared.node.kind
        self._before_ms = windows.before_ms if is_left else windows.after_ms
        self._after_ms = windows.after_ms if is_left else windows.before_ms
        self._outer = kind == "outer" or (kind == "left" and is_left)
        self._keeps_waiting = kind != "inner"

    def process(self, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        self._join(key, value, timestamp, headers)
        if key is not None:
            self._own.put(key, value, timestamp)

    def _join(self, key: Any, value: Any, timestamp: int, headers: Any) -> None:
        shared, is_left = self._shared, self._is_left
        shared.stream_time_ms = max(shared.stream_time_ms, timestamp)
        if self._outer and key is None and value is not None:
            shared.forward(key, self._joined(key, value, timestamp, None), timestamp, headers)
            return
        if key is None or value is None:
            shared.task.drop("null key or value")
            return
        if self._keeps_waiting and timestamp == shared.stream_time_ms:
            shared.emit_unpaired(self._after_ms, headers)
        to_ms = max(0, timestamp + self._after_ms)
        partners = self._other.fetch_rows(key, max(0, timestamp - self._before_ms), to_ms)
        for other_ms, partner, _ in partners:
            if self._keeps_waiting:
                shared.found_partner(key, other_ms, is_left=not is_left)
            time_ms = max(timestamp, other_ms)
            shared.forward(key, self._joined(key, value, time_ms, partner), time_ms, headers)
        if self._outer and not partners:
            if to_ms < shared.stream_time_ms:
                shared.forward(key, self._joined(key, value, timestamp, None), timestamp, headers)
            else:
                shared.wait(key, value, timestamp, is_left=is_left)

    def _joined(self, key: Any, value: Any, timestamp: int, partner: Any) -> Any:
        joiner = self._shared.joiner
        return joiner(key, value, timestamp, partner) if self._is_left else joiner(key, partner, timestamp, value)
