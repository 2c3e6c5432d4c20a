"""Topics of the test driver: where a test puts records in, and where it takes them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.processors import Headers, Record

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterable, Iterator

    from millstream.streams.interpret.driver import TopologyTestDriver
    from millstream.streams.serdes import Serde

Raw = tuple[bytes | None, bytes | None, int, Headers]


class TestInputTopic:
    """Pipes records into a topic."""

    __test__ = False

    def __init__(
        self,
        driver: TopologyTestDriver,
        name: str,
        key_serde: Serde,
        value_serde: Serde,
        start_ms: int,
        auto_advance_ms: int,
    ) -> None:
        self._pipe = driver.pipe_raw
        self.name = name
        self._to_key = key_serde.serialize
        self._to_value = value_serde.serialize
        self._time_ms = start_ms
        self._auto_advance_ms = auto_advance_ms

    def advance_time(self, by_ms: int) -> None:
        """Let the time of the records that follow pass."""
        self._time_ms += by_ms

    def pipe_input(self, key: Any, value: Any, timestamp_ms: int | None = None, headers: Headers = ()) -> None:
        """One record; without a time it gets the topic's, which then advances."""
        if timestamp_ms is None:
            timestamp_ms = self._time_ms
            self._time_ms += self._auto_advance_ms
        self._pipe(
            self.name,
            None if key is None else self._to_key(key),
            None if value is None else self._to_value(value),
            timestamp_ms,
            headers,
        )

    def pipe_value(self, value: Any, timestamp_ms: int | None = None) -> None:
        """A record without key."""
        self.pipe_input(None, value, timestamp_ms)

    def pipe_many(self, records: Iterable[tuple[Any, ...]]) -> None:
        """Several records: (key, value) or (key, value, time)."""
        for record in records:
            self.pipe_input(*record)


class TestOutputTopic:
    """Takes out what was written to a topic, oldest first."""

    __test__ = False

    def __init__(self, records: deque[Raw], name: str, key_serde: Serde, value_serde: Serde) -> None:
        self._records = records
        self.name = name
        self._from_key = key_serde.deserialize
        self._from_value = value_serde.deserialize

    def is_empty(self) -> bool:
        return not self._records

    def queue_size(self) -> int:
        return len(self._records)

    def read_record(self) -> Record:
        """The next record; an error if there is none."""
        if not self._records:
            raise IndexError(f"nothing more was written to {self.name!r}")
        key, value, timestamp_ms, headers = self._records.popleft()
        return Record(
            None if key is None else self._from_key(key),
            None if value is None else self._from_value(value),
            timestamp_ms,
            headers,
        )

    def read_key_value(self) -> tuple[Any, Any]:
        record = self.read_record()
        return record.key, record.value

    def read_value(self) -> Any:
        return self.read_record().value

    def read_records_to_list(self) -> list[Record]:
        """Everything that is left."""
        return list(self._all())

    def read_key_values_to_list(self) -> list[tuple[Any, Any]]:
        return [(record.key, record.value) for record in self._all()]

    def read_values_to_list(self) -> list[Any]:
        return [record.value for record in self._all()]

    def read_key_values_to_map(self) -> dict[Any, Any]:
        """The last value of each key, as a table would have it, tombstones included."""
        return dict(self.read_key_values_to_list())

    def _all(self) -> Iterator[Record]:
        while self._records:
            yield self.read_record()
