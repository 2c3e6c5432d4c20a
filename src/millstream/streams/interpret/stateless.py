"""Steps that keep nothing: filters, maps, branches, and the ways to topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.streams.interpret.task import Task

    StreamStep = Callable[[Any, Any, int, Any], None]
    TableStep = Callable[[Any, Any, Any, int, Any], None]
    Bound = Callable[[Any, Any, int], Any]


def fan_out(steps: Sequence[Callable[..., None]]) -> Callable[..., None]:
    """One step from several, each in turn."""
    if len(steps) == 1:
        return steps[0]
    if not steps:
        return lambda *_arguments: None

    def each(*arguments: Any) -> None:
        for step in steps:
            step(*arguments)

    return each


def filtered(keep: Bound, forward: StreamStep) -> StreamStep:
    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if keep(key, value, timestamp):
            forward(key, value, timestamp, headers)

    return process


def mapped(mapper: Bound, forward: StreamStep) -> StreamStep:
    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        new_key, new_value = mapper(key, value, timestamp)
        forward(new_key, new_value, timestamp, headers)

    return process


def mapped_values(mapper: Bound, forward: StreamStep) -> StreamStep:
    return lambda key, value, timestamp, headers: forward(key, mapper(key, value, timestamp), timestamp, headers)


def rekeyed(selector: Bound, forward: StreamStep) -> StreamStep:
    return lambda key, value, timestamp, headers: forward(selector(key, value, timestamp), value, timestamp, headers)


def flat_mapped(mapper: Bound, forward: StreamStep) -> StreamStep:
    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        for new_key, new_value in mapper(key, value, timestamp):
            forward(new_key, new_value, timestamp, headers)

    return process


def flat_mapped_values(mapper: Bound, forward: StreamStep) -> StreamStep:
    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        for new_value in mapper(key, value, timestamp) or ():
            forward(key, new_value, timestamp, headers)

    return process


def peeked(action: Callable[[Any, Any], object], forward: StreamStep) -> StreamStep:
    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        action(key, value)
        forward(key, value, timestamp, headers)

    return process


def branched(branches: Sequence[tuple[Bound | None, StreamStep]]) -> StreamStep:
    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        for keep, step in branches:
            if keep is None or keep(key, value, timestamp):
                step(key, value, timestamp, headers)
                return

    return process


def to_internal_topic(
    task: Task,
    topic: str,
    to_key: Callable[[Any], bytes],
    to_value: Callable[[Any], bytes],
    *,
    drops_null_keys: bool,
) -> StreamStep:
    """Through a topic of the application's own, as bytes."""

    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        if key is not None or not drops_null_keys:
            key_bytes = None if key is None else to_key(key)
            task.enqueue(topic, key_bytes, None if value is None else to_value(value), timestamp, headers)

    return process


def from_topic(from_key: Callable[[bytes], Any], from_value: Callable[[bytes], Any], forward: StreamStep) -> StreamStep:
    """Bytes to values."""

    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        forward(
            None if key is None else from_key(key),
            None if value is None else from_value(value),
            timestamp,
            headers,
        )

    return process


def regrouped(
    task: Task, mapper: Bound, topic: str, to_key: Callable[[Any], bytes], to_value: Callable[[Any], bytes]
) -> TableStep:
    """A table's change as what leaves its old group and what enters its new one, through an internal topic."""

    def placed(key: Any, value: Any, timestamp: int) -> tuple[bytes, bytes] | None:
        """Its new key and value, if it has both."""
        if value is None:
            return None
        new_key, new_value = mapper(key, value, timestamp)
        return None if new_key is None or new_value is None else (to_key(new_key), to_value(new_value))

    def process(key: Any, new: Any, old: Any, timestamp: int, headers: Any) -> None:
        entering, leaving = placed(key, new, timestamp), placed(key, old, timestamp)
        if entering is not None and leaving is not None and entering[0] == leaving[0]:
            task.enqueue(topic, leaving[0], (entering[1], leaving[1]), timestamp, headers)
            return
        if leaving is not None:
            task.enqueue(topic, leaving[0], (None, leaving[1]), timestamp, headers)
        if entering is not None:
            task.enqueue(topic, entering[0], (entering[1], None), timestamp, headers)

    return process


def from_regrouped(
    from_key: Callable[[bytes], Any], from_value: Callable[[bytes], Any], forward: TableStep
) -> StreamStep:
    """The other end of that topic."""

    def process(key: Any, change: Any, timestamp: int, headers: Any) -> None:
        new, old = change
        forward(
            from_key(key),
            None if new is None else from_value(new),
            None if old is None else from_value(old),
            timestamp,
            headers,
        )

    return process
