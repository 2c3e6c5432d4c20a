"""Tables: sources, filters, mapped values, joins, suppression, and how a table's current value is looked up.

A table step gets the new and the old value of a key; the old one only if the table before it sends it, as the plan
says. Null is "not there".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.interpret.errors import BufferFull

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.interpret.stores import KeyValueState
    from millstream.streams.interpret.task import Task
    from millstream.streams.plan.nodes import JoinKind, Suppress

    StreamStep = Callable[[Any, Any, int, Any], None]
    TableStep = Callable[[Any, Any, Any, int, Any], None]
    Getter = Callable[[Any], tuple[Any, int] | None]
    Joiner = Callable[[Any, Any, int, Any], Any]


def table_source(task: Task, store: KeyValueState | None, forward: TableStep, *, sends_old: bool) -> StreamStep:
    """Records as changes."""

    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is None:
            task.drop("null key")
            return
        old = None
        if store is not None:
            if sends_old:
                old = store.get(key)
            store.put(key, value, timestamp)
        forward(key, value, old, timestamp, headers)

    return process


def table_filter(
    keep: Callable[[Any, Any, int], Any],
    store: KeyValueState | None,
    forward: TableStep,
    *,
    sends_old: bool,
) -> TableStep:
    def kept(key: Any, value: Any, timestamp: int) -> Any:
        return value if value is not None and keep(key, value, timestamp) else None

    def process(key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        new = kept(key, new, timestamp)
        before = None
        if sends_old:
            before = store.get(key) if store is not None else kept(key, old, timestamp)
            if before is None and new is None:
                return
        if store is not None:
            store.put(key, new, timestamp)
        forward(key, new, before, timestamp, headers)

    return process


def table_map(
    mapper: Callable[[Any, Any, int], Any],
    store: KeyValueState | None,
    forward: TableStep,
    *,
    sends_old: bool,
) -> TableStep:
    def process(key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        mapped = None if new is None else mapper(key, new, timestamp)
        before = None
        if sends_old:
            if store is not None:
                before = store.get(key)
            elif old is not None:
                before = mapper(key, old, timestamp)
        if store is not None:
            store.put(key, mapped, timestamp)
        forward(key, mapped, before, timestamp, headers)

    return process


def join_this(
    task: Task, kind: JoinKind, joiner: Joiner, other: Getter, forward: TableStep, *, sends_old: bool
) -> TableStep:
    """A change of the left table."""

    def process(key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        if key is None:
            task.drop("null key")
            return
        row = other(key)
        value = None if row is None else row[0]
        if value is None and (kind == "inner" or (new is None and old is None)):
            return
        time_ms = timestamp if row is None else max(timestamp, row[1])
        joins_null = kind == "outer" and value is not None
        result = joiner(key, new, time_ms, value) if new is not None or joins_null else None
        before = None
        if sends_old and (old is not None or joins_null):
            before = joiner(key, old, time_ms, value)
        forward(key, result, before, time_ms, headers)

    return process


def join_other(
    task: Task, kind: JoinKind, joiner: Joiner, this: Getter, forward: TableStep, *, sends_old: bool
) -> TableStep:
    """A change of the right table."""

    def process(key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        if key is None:
            task.drop("null key")
            return
        row = this(key)
        value = None if row is None else row[0]
        if value is None and (kind != "outer" or (new is None and old is None)):
            return
        time_ms = timestamp if row is None else max(timestamp, row[1])
        joins_null = kind != "inner" and value is not None
        result = joiner(key, value, time_ms, new) if new is not None or joins_null else None
        before = None
        if sends_old and (old is not None or joins_null):
            before = joiner(key, value, time_ms, old)
        forward(key, result, before, time_ms, headers)

    return process


def join_merge(store: KeyValueState | None, forward: TableStep, *, sends_old: bool) -> TableStep:
    """Changes from either side, as one table."""

    def process(key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        if store is not None:
            store.put(key, new, timestamp)
        forward(key, new, old if sends_old else None, timestamp, headers)

    return process


def joined_getter(kind: JoinKind, joiner: Joiner, this: Getter, other: Getter) -> Getter:
    """The value of a join that is not kept: computed from both sides."""

    def get(key: Any) -> tuple[Any, int] | None:
        one, two = this(key), other(key)
        if (one is None and (kind != "outer" or two is None)) or (two is None and kind == "inner"):
            return None
        time_ms = max(row[1] for row in (one, two) if row is not None)
        value = joiner(key, one and one[0], time_ms, two and two[0])
        return None if value is None else (value, time_ms)

    return get


class Suppressing:
    """Holds the last change of each key back; they leave in the order of their time, then of their key's bytes."""

    def __init__(self, node: Suppress, forward: TableStep) -> None:
        self._node = node
        self._forward = forward
        self._to_key = node.key_serde.serialize
        self._places: dict[bytes, tuple[int, bytes]] = {}
        self._waiting: dict[tuple[int, bytes], tuple[Any, Any, Any, int, Any]] = {}
        # What downstream last saw of a key that waits.
        self._seen: dict[bytes, Any] = {}
        self._observed_ms = -1
        self._earliest_ms = 2**63

    def save(self) -> dict[bytes, Any]:
        """Stream time under nothing, and what waits under its key behind a letter."""
        node, kept = self._node, dict[bytes, Any]()
        kept[b""] = [self._observed_ms]

        def as_bytes(value: Any) -> bytes | None:
            return None if value is None else node.value_serde.serialize(value)

        for (time_ms, row_key), (_, new, old, timestamp, headers) in self._waiting.items():
            values = [as_bytes(new), as_bytes(old), as_bytes(self._seen[row_key])]
            kept[b"k" + row_key] = [time_ms, timestamp, [list(each) for each in headers or ()], *values]
        return kept

    def load(self, kept: dict[bytes, Any]) -> None:
        node = self._node

        def value_of(held: bytes | None) -> Any:
            return None if held is None else node.value_serde.deserialize(held)

        (self._observed_ms,) = kept.get(b"", (-1,))
        self._places, self._waiting, self._seen = {}, {}, {}
        for place, row in kept.items():
            if place:
                time_ms, timestamp, headers, new, old, seen = row
                row_key = place[1:]
                self._places[row_key] = (time_ms, row_key)
                shown = tuple((name, value) for name, value in headers)
                key = node.key_serde.deserialize(row_key)
                self._waiting[time_ms, row_key] = (key, value_of(new), value_of(old), timestamp, shown)
                self._seen[row_key] = value_of(seen)
        self._earliest_ms = min((time_ms for time_ms, _ in self._waiting), default=2**63)

    def process(self, key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        node = self._node
        self._observed_ms = max(self._observed_ms, timestamp)
        row_key = self._to_key(key)
        place = self._places.get(row_key)
        if place is None:
            time_ms = key.window.end_ms if node.final else timestamp
            place = self._places[row_key] = (time_ms, row_key)
            self._seen[row_key] = old
            self._earliest_ms = min(self._earliest_ms, time_ms)
        self._waiting[place] = (key, new, old, timestamp, headers)
        if self._earliest_ms <= self._observed_ms - node.wait_ms:
            self._release(self._observed_ms - node.wait_ms)
        if node.records_max is not None and len(self._waiting) > node.records_max:
            if node.shut_down_when_full:
                raise BufferFull(
                    f"{node.name} holds back {len(self._waiting)} records: the limit is {node.records_max}"
                )
            for first in sorted(self._waiting)[: len(self._waiting) - node.records_max]:
                self._emit(first)

    def value_downstream(self, key: Any, before: Getter) -> tuple[Any, int] | None:
        """The value of a key as it is behind the suppression."""
        row_key = self._to_key(key)
        if row_key not in self._places:
            return before(key)
        seen = self._seen[row_key]
        return None if seen is None else (seen, -1)

    def _release(self, until_ms: int) -> None:
        for place in sorted(place for place in self._waiting if place[0] <= until_ms):
            self._emit(place)
        self._earliest_ms = min((time_ms for time_ms, _ in self._waiting), default=2**63)

    def _emit(self, place: tuple[int, bytes]) -> None:
        key, new, old, timestamp, headers = self._waiting.pop(place)
        del self._places[place[1]], self._seen[place[1]]
        # A window that was never seen downstream needs no tombstone.
        if new is not None or not self._node.final:
            self._forward(key, new, old, timestamp, headers)
