"""Copies of tables in memory: changes as bytes go in, values come out.

One thread applies changes, any thread asks. Looking one key up takes no lock; what goes over several keys works on a
sorted list of them, which is made when it is first needed after keys have come or gone.
"""

from __future__ import annotations

import struct
import threading
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from millstream.streams.windows import Window, Windowed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.serdes import Serde

_LONG = struct.Struct(">q")
_TWO_LONGS = struct.Struct(">qq")


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

    def apply(self, key: bytes, value: bytes | None) -> None:
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


class WindowCopy:
    """The last value of each key and window. `suffix_bytes` are left off behind the window's start."""

    def __init__(self, key_serde: Serde, value_serde: Serde, size_ms: int, *, suffix_bytes: int = 0) -> None:
        self.size_ms = size_ms
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

    def apply(self, key: bytes, value: bytes | None) -> None:
        row_key, start_ms = self._split(key)
        with self._lock:
            windows = self._rows.setdefault(row_key, {})
            if value is None:
                windows.pop(start_ms, None)
                if not windows:
                    del self._rows[row_key]
            else:
                windows[start_ms] = value

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

    def __init__(self, key_serde: Serde, value_serde: Serde) -> None:
        self.key_type = key_serde.type
        self._to_key = key_serde.serialize
        self._from_key = key_serde.deserialize
        self._from_value = value_serde.deserialize
        self._rows: dict[bytes, dict[tuple[int, int], bytes]] = {}
        self._lock = threading.Lock()

    def apply(self, key: bytes, value: bytes | None) -> None:
        row_key, place = key[:-16], _TWO_LONGS.unpack_from(key, len(key) - 16)
        with self._lock:
            sessions = self._rows.setdefault(row_key, {})
            if value is None:
                sessions.pop(place, None)
                if not sessions:
                    del self._rows[row_key]
            else:
                sessions[place] = value

    def change(self, key: bytes, value: bytes | None) -> tuple[Any, Any]:
        end_ms, start_ms = _TWO_LONGS.unpack_from(key, len(key) - 16)
        windowed = Windowed(self._from_key(key[:-16]), Window(start_ms, end_ms))
        return windowed, None if value is None else self._from_value(value)

    def fetch(self, key: Any) -> list[tuple[Window, Any]]:
        """A key's sessions, in the order of time."""
        with self._lock:
            found = sorted(self._rows.get(self._to_key(key), {}).items())
        return [(Window(start_ms, end_ms), self._from_value(value)) for (end_ms, start_ms), value in found]

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._rows.values()))


Copy = KeyValueCopy | WindowCopy | SessionCopy
