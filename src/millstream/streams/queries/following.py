"""Following a table's topic: all partitions from the start, only what is committed, for as long as the view is open.

New partitions are found within `metadata.max.age.ms`, as by any client.

The client's thread applies changes; the caller's threads ask. `behind` says how many records of the topic have not been
applied yet, counted at the broker at that moment; `wait_until_current` waits until all that was there when it was
called has been. If following fails, or the view is closed, the next question says so instead of answering from a copy
that no longer moves.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self, overload

from millstream.client.offsets import EARLIEST, LATEST, list_offsets
from millstream.client.reading import batches_from
from millstream.client.sync import SyncClient
from millstream.client.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.streams.queries.copies import Copy, KeyValueCopy, SessionCopy, WindowCopy
    from millstream.streams.types import DataType
    from millstream.streams.windows import Window, Windowed

_POLL_MS = 500


class FollowingFailed(RuntimeError):
    """The copy could not be kept up to date; the cause is the error that stopped it."""


class ViewClosed(RuntimeError):
    """The view has been closed: its copy no longer moves, so it gives no answers."""


class NotCurrent(TimeoutError):
    """The copy had not caught up in the time given."""


class Following:
    """A copy that follows a topic."""

    def __init__(self, options: str | Mapping[str, str], topic: str, copy: Copy) -> None:
        self.topic = topic
        self._copy: Copy = copy
        self._positions: dict[TopicPartition, int] = {}
        self._moved = threading.Condition()
        self._failure: BaseException | None = None
        self._listeners: list[Callable[[Any, Any], object]] = []
        self._client = SyncClient({"bootstrap.servers": options} if isinstance(options, str) else options)
        try:
            self._positions = self._client.run(self._starts)
            self._run = self._client.start(self._follow)
        except BaseException:
            self._client.close()
            raise
        self._run.add_done_callback(self._ended)

    # -- in the client's thread

    async def _starts(self, client: Client) -> dict[TopicPartition, int]:
        """Where partitions begin that are not followed yet. Metadata is asked for again when it is old."""
        topic = await client.retrying(lambda: client.metadata.topic(self.topic))
        places = [(self.topic, partition.index) for partition in topic.partitions]
        new = [place for place in places if place not in self._positions]
        found = await list_offsets(client, dict.fromkeys(new, EARLIEST)) if new else {}
        return {place: found[place].offset for place in new}

    async def _follow(self, client: Client) -> None:
        tail = Tail(client, self._positions, max_wait_ms=_POLL_MS, read_committed=True, reset=EARLIEST)
        try:
            while True:
                if grown := await self._starts(client):
                    with self._moved:
                        self._positions.update(grown)
                    tail.add(grown)
                for fetched, offset, after in await tail.next(_POLL_MS):
                    for batch in batches_from(fetched, offset, read_committed=True):
                        for record in batch.records:
                            if record.key is not None:
                                value = None if record.value is None else bytes(record.value)
                                self._apply(bytes(record.key), value, fetched.partition)
                    with self._moved:
                        self._positions[fetched.topic, fetched.partition] = after
                        self._moved.notify_all()
        finally:
            await tail.close()

    def _apply(self, key: bytes, value: bytes | None, partition: int) -> None:
        self._copy.apply(key, value, partition)
        for listener in self._listeners:
            listener(*self._copy.change(key, value))

    def _ended(self, run: Any) -> None:
        if not run.cancelled():
            with self._moved:
                self._failure = self._failure or run.exception()
                self._moved.notify_all()

    # -- in the caller's

    def on_change(self, listener: Callable[[Any, Any], object]) -> None:
        """Call a function with key and value of every change from now on, in the client's thread: be quick."""
        self._listeners = [*self._listeners, listener]

    def off_change(self, listener: Callable[[Any, Any], object]) -> None:
        """No longer."""
        self._listeners = [each for each in self._listeners if each is not listener]

    @property
    def key_type(self) -> DataType:
        """The type of the keys that can be asked for."""
        return self._copy.key_type

    @property
    def has_failed(self) -> bool:
        """Whether following has stopped: no change will come any more, and every question raises why."""
        return self._failure is not None

    def behind(self) -> int:
        """How many records of the topic have not been applied yet, as the broker counts them now."""
        ends = self._asked_ends()
        with self._moved:
            return sum(max(0, end - self._positions[place]) for place, end in ends.items())

    def wait_until_current(self, timeout_s: float = 30) -> None:
        """Wait until everything that is in the topic now has been applied."""
        ends = self._asked_ends()

        def current() -> bool:
            return self._failure is not None or all(self._positions[place] >= end for place, end in ends.items())

        with self._moved:
            reached = self._moved.wait_for(current, timeout_s)
        self._check()
        if not reached:
            raise NotCurrent(f"the copy of {self.topic!r} is still {self.behind()} records behind after {timeout_s} s")

    def _asked_ends(self) -> dict[TopicPartition, int]:
        self._check()
        try:
            return self._client.run(self._ends)
        except BaseException:
            # Closed meanwhile: say that, and not what the client says when its loop has gone.
            self._check()
            raise

    async def _ends(self, client: Client) -> dict[TopicPartition, int]:
        found = await list_offsets(client, dict.fromkeys([*self._positions], LATEST), read_committed=True)
        return {place: each.offset for place, each in found.items()}

    def _check(self) -> None:
        if isinstance(self._failure, ViewClosed):
            raise ViewClosed(str(self._failure))
        if self._failure is not None:
            raise FollowingFailed(f"following {self.topic!r} has stopped: {self._failure}") from self._failure

    def close(self) -> None:
        """No longer follow; every question from now on raises ViewClosed."""
        with self._moved:
            self._failure = ViewClosed(f"the view of {self.topic!r} is closed: it no longer follows its topic")
            self._moved.notify_all()
        self._run.cancel()
        self._client.close()

    def __len__(self) -> int:
        return len(self._copy)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class KeyValueView(Following):
    """A table that can be asked for keys."""

    _copy: KeyValueCopy

    def get(self, key: Any) -> Any:
        """The value of a key; None if it has none."""
        if self._failure is not None:
            self._check()
        return self._copy.get(key)

    def range(self, low: Any = None, high: Any = None, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Keys from low to high, both included, in the order of their bytes."""
        self._check()
        return self._copy.range(low, high, reverse=reverse)

    def all(self) -> Iterator[tuple[Any, Any]]:
        return self.range()


class WindowView(Following):
    """A windowed table that can be asked for keys and times."""

    _copy: WindowCopy

    def get(self, key: Any, start_ms: int) -> Any:
        """The value of a key in the window that starts then."""
        if self._failure is not None:
            self._check()
        return self._copy.get(key, start_ms)

    @overload
    def fetch(self, key: Any, from_ms: int) -> Any: ...

    @overload
    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[Window, Any]]: ...

    def fetch(self, key: Any, from_ms: int, to_ms: int | None = None) -> Any:
        """With one time the value of the window that starts then, as `get`; with two a key's windows that start in
        this time, both ends included."""
        self._check()
        return self._copy.get(key, from_ms) if to_ms is None else self._copy.fetch(key, from_ms, to_ms)

    def fetch_all(self, from_ms: int, to_ms: int) -> list[tuple[Windowed, Any]]:
        """All windows that start in this time, by start, then key."""
        self._check()
        return self._copy.fetch_all(from_ms, to_ms)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """All windows, by start, then key."""
        return iter(self.fetch_all(-(2**63), 2**63))


class SessionView(Following):
    """A table of sessions that can be asked for keys."""

    _copy: SessionCopy

    def fetch(self, key: Any) -> list[tuple[Window, Any]]:
        """A key's sessions, in the order of time."""
        self._check()
        return self._copy.fetch(key)

    def all(self) -> Iterator[tuple[Windowed, Any]]:
        """All sessions, by key, then time."""
        self._check()
        return iter(self._copy.fetch_all())
