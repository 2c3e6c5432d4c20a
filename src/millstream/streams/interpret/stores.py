"""Key-value stores of the driver: bytes in a dict, so that a value that is changed after `put` does not change in here.

Order is that of the keys' bytes, as in Kafka Streams. With timestamps a value keeps the time of its record; `get`
gives the value alone, `get_with_timestamp` both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from millstream.streams.plan.stores import KeyValueStore


class KeyValueState:
    """A key-value store."""

    def __init__(self, spec: KeyValueStore) -> None:
        self.name = spec.name
        self._rows: dict[bytes, tuple[bytes, int]] = {}
        self._to_key = spec.key_serde.serialize
        self._from_key = spec.key_serde.deserialize
        self._to_value = spec.value_serde.serialize
        self._from_value = spec.value_serde.deserialize

    def get(self, key: Any) -> Any:
        row = self._rows.get(self._to_key(key))
        return None if row is None else self._from_value(row[0])

    def get_with_timestamp(self, key: Any) -> tuple[Any, int] | None:
        row = self._rows.get(self._to_key(key))
        return None if row is None else (self._from_value(row[0]), row[1])

    def put(self, key: Any, value: Any, timestamp_ms: int = -1) -> None:
        """Null deletes."""
        if value is None:
            self._rows.pop(self._to_key(key), None)
        else:
            self._rows[self._to_key(key)] = (self._to_value(value), timestamp_ms)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """What was there before; null if the value was put."""
        found = self.get(key)
        if found is None:
            self.put(key, value)
        return found

    def delete(self, key: Any) -> Any:
        """What was there."""
        row = self._rows.pop(self._to_key(key), None)
        return None if row is None else self._from_value(row[0])

    def all(self) -> Iterator[tuple[Any, Any]]:
        """Every key and value, in the order of the keys' bytes."""
        return self.range(None, None)

    def range(self, low: Any, high: Any, *, reverse: bool = False) -> Iterator[tuple[Any, Any]]:
        """Keys from low to high, both included; None is no bound."""
        first = None if low is None else self._to_key(low)
        last = None if high is None else self._to_key(high)
        for key in sorted(self._rows, reverse=reverse):
            if (first is None or key >= first) and (last is None or key <= last) and key in self._rows:
                yield self._from_key(key), self._from_value(self._rows[key][0])

    def approximate_num_entries(self) -> int:
        return len(self._rows)

    def __len__(self) -> int:
        return len(self._rows)
