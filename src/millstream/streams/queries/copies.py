"""Copies of tables in memory: changes as bytes go in, values come out.

One thread applies changes, any thread asks. Looking one key up takes no lock; what goes over several keys works on a
sorted list of them, which is made when it is first needed after keys have come or gone.

Windows and sessions go when they are older than the retention, counted back from the newest of their partition: nobody
writes tombstones for them, neither here nor in Kafka Streams.
"""

from __future__ import annotations

import heapq
import struct
import threading
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from millstream.streams.windows import Window, Windowed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from millstream.streams.serdes import Serde

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")
_Place = tuple[int, bytes, int]
# So many places of what has been deleted are borne, beyond as many as there is alive.
_STALE_MAX = 1_000


class KeyValueCopy:
    """The last value of each key."""

    def __init__(self, key_serde: Serde, value_serde: Serde) -> None:
        self.key_type = key_serde.type
        self._to_key = key_serde.serialize
        self._from_key = key_serde.deserialize
        self._from_value = value_serde.deserialize
        self._rows: dict[bytes, bytes] = {}
        self._ordered: list[bytes] | None = None
        self._lock = threading.Lock()

    def apply(self, key: bytes, value: bytes | None, _partition: int = 0) -> None:
        """One change; null deletes."""
        with self._lock:
            if value is None:
                if self._rows.pop(key, None) is not None:
                    self._ordered = None
            else:
                if key not in self._rows:
                    self._ordered = None
                self._rows[key] = value

    def change(self, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        """A change as values."""
        return self._from_key(key), None if value is None else self._from_value(value)

    def get(self, key: Any) -> Any:
        row = self._rows.get(self._to_key(key))
        return None if row is None else self._from_value(row)

    def range(self, low: Any = None, high: Any = None, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Keys from low to high, both included, in the order of their bytes; None is no bound."""
        with self._lock:
            if self._ordered is None:
                self._ordered = sorted(self._rows)
            ordered = self._ordered
        first = 0 if low is None else bisect_left(ordered, self._to_key(low))
        last = len(ordered) if high is None else bisect_right(ordered, self._to_key(high))
        for key in reversed(ordered[first:last]) if reverse else ordered[first:last]:
            row = self._rows.get(key)
            if row is not None:
                yield self._from_key(key), self._from_value(row)

    def __len__(self) -> int:
        return len(self._rows)


class _Ages:
    """What a partition holds, oldest first, as (time, key, rest of the place); without a retention nothing is old.

    What is deleted is not taken out at once. A session that grows leaves a place behind with every record, so when
    there are too many of them all are looked through.
    """

    def __init__(self, retention_ms: int | None, is_there: Callable[[_Place], bool]) -> None:
        self._retention_ms = retention_ms
        self._is_there = is_there
        self._newest_ms: dict[int, int] = {}
        self._places: dict[int, list[_Place]] = {}
        self._places_max: dict[int, int] = {}

    def add(self, partition: int, time_ms: int, key: bytes, rest: int = 0) -> None:
        """A place that was not there before, and is now."""
        if self._retention_ms is None:
            return
        places = self._places.setdefault(partition, [])
        heapq.heappush(places, (time_ms, key, rest))
        if len(places) > self._places_max.get(partition, _STALE_MAX):
            places[:] = {place for place in places if self._is_there(place)}
            heapq.heapify(places)
            self._places_max[partition] = 2 * len(places) + _STALE_MAX

    def expired(self, partition: int, time_ms: int) -> Iterator[_Place]:
        """What has become too old now that the partition has come to this time."""
        if self._retention_ms is None or time_ms <= self._newest_ms.get(partition, -1):
            return
        self._newest_ms[partition] = time_ms
        places = self._places.get(partition, [])
        while places and places[0][0] < time_ms - self._retention_ms:
            yield heapq.heappop(places)

    def is_old(self, partition: int, time_ms: int) -> bool:
        """Whether something that comes now has expired already."""
        return self._retention_ms is not None and time_ms < self._newest_ms.get(partition, -1) - self._retention_ms


class WindowCopy:
    """The last value of each key and window. `suffix_bytes` are left off behind the window's start."""

    def __init__(
        self,
        key_serde: Serde,
        value_serde: Serde,
        size_ms: int,
        *,
        suffix_bytes: int = 0,
        retention_ms: int | None = None,
    ) -> None:
        self.size_ms = size_ms
        self._ages = _Ages(retention_ms, self._is_there)
        self.key_type = key_serde.type
        self._to_key = key_serde.serialize
        self._from_key = key_serde.deserialize
        self._from_value = value_serde.deserialize
        self._suffix_bytes = suffix_bytes
        self._rows: dict[bytes, dict[int, bytes]] = {}
        self._lock = threading.Lock()

    def _split(self, key: bytes) -> tuple[bytes, int]:
        at = len(key) - 8 - self._suffix_bytes
        return key[:at], _LONG.unpack_from(key, at)[0]

    def apply(self, key: bytes, value: bytes | None, partition: int = 0) -> None:
        row_key, start_ms = self._split(key)
        with self._lock:
            for old_ms, old_key, _ in self._ages.expired(partition, start_ms):
                self._drop(old_key, old_ms)
            if value is None:
                self._drop(row_key, start_ms)
            elif not self._ages.is_old(partition, start_ms):
                windows = self._rows.setdefault(row_key, {})
                is_new = start_ms not in windows
                windows[start_ms] = value
                if is_new:
                    self._ages.add(partition, start_ms, row_key)

    def _is_there(self, place: _Place) -> bool:
        start_ms, row_key, _ = place
        return start_ms in self._rows.get(row_key, ())

    def _drop(self, row_key: bytes, start_ms: int) -> None:
        windows = self._rows.get(row_key)
        if windows is not None:
            windows.pop(start_ms, None)
            if not windows:
                del self._rows[row_key]

    def change(self, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        row_key, start_ms = self._split(key)
        return self._windowed(row_key, start_ms), None if value is None else self._from_value(value)

    def _windowed(self, row_key: bytes, start_ms: int) -> Windowed:
        return Windowed(self._from_key(row_key), Window(start_ms, start_ms + self.size_ms))

    def get(self, key: Any, start_ms: int) -> Any:
        """The value of the window that starts then."""
        row = self._rows.get(self._to_key(key), {}).get(start_ms)
        return None if row is None else self._from_value(row)

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> list[tuple[Window, Any]]:
        """A key's windows that start in this time, both ends included."""
        with self._lock:
            found = sorted(
                (start_ms, value)
                for start_ms, value in self._rows.get(self._to_key(key), {}).items()
                if from_ms <= start_ms <= to_ms
            )
        return [(Window(start_ms, start_ms + self.size_ms), self._from_value(value)) for start_ms, value in found]

    def fetch_all(self, from_ms: int, to_ms: int) -> list[tuple[Windowed, Any]]:
        """All windows that start in this time, by start, then key."""
        with self._lock:
            found = sorted(
                (start_ms, row_key, value)
                for row_key, windows in self._rows.items()
                for start_ms, value in windows.items()
                if from_ms <= start_ms <= to_ms
            )
        return [(self._windowed(row_key, start_ms), self._from_value(value)) for start_ms, row_key, value in found]

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._rows.values()))


class SessionCopy:
    """The last value of each key and session."""

    def __init__(self, key_serde: Serde, value_serde: Serde, *, retention_ms: int | None = None) -> None:
        self._ages = _Ages(retention_ms, self._is_there)
        self.key_type = key_serde.type
        self._to_key = key_serde.serialize
        self._from_key = key_serde.deserialize
        self._from_value = value_serde.deserialize
        self._rows: dict[bytes, dict[tuple[int, int], bytes]] = {}
        self._lock = threading.Lock()

    def apply(self, key: bytes, value: bytes | None, partition: int = 0) -> None:
        row_key = key[:-16]
        end_ms, start_ms = _TWO_LONGS.unpack_from(key, len(key) - 16)
        with self._lock:
            for old_end_ms, old_key, old_start_ms in self._ages.expired(partition, end_ms):
                self._drop(old_key, (old_end_ms, old_start_ms))
            if value is None:
                self._drop(row_key, (end_ms, start_ms))
            elif not self._ages.is_old(partition, end_ms):
                sessions = self._rows.setdefault(row_key, {})
                is_new = (end_ms, start_ms) not in sessions
                sessions[end_ms, start_ms] = value
                if is_new:
                    self._ages.add(partition, end_ms, row_key, start_ms)

    def _is_there(self, place: _Place) -> bool:
        end_ms, row_key, start_ms = place
        return (end_ms, start_ms) in self._rows.get(row_key, ())

    def _drop(self, row_key: bytes, place: tuple[int, int]) -> None:
        sessions = self._rows.get(row_key)
        if sessions is not None:
            sessions.pop(place, None)
            if not sessions:
                del self._rows[row_key]

    def change(self, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        end_ms, start_ms = _TWO_LONGS.unpack_from(key, len(key) - 16)
        windowed = Windowed(self._from_key(key[:-16]), Window(start_ms, end_ms))
        return windowed, None if value is None else self._from_value(value)

    def fetch(self, key: Any) -> list[tuple[Window, Any]]:
        """A key's sessions, in the order of time."""
        with self._lock:
            found = sorted(self._rows.get(self._to_key(key), {}).items())
        return [(Window(start_ms, end_ms), self._from_value(value)) for (end_ms, start_ms), value in found]

    def fetch_all(self) -> list[tuple[Windowed, Any]]:
        """All sessions, by key, then time."""
        with self._lock:
            found = sorted(
                (row_key, end_ms, start_ms, value)
                for row_key, sessions in self._rows.items()
                for (end_ms, start_ms), value in sessions.items()
            )
        return [
            (Windowed(self._from_key(row_key), Window(start_ms, end_ms)), self._from_value(value))
            for row_key, end_ms, start_ms, value in found
        ]

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._rows.values()))


Copy = KeyValueCopy | WindowCopy | SessionCopy
