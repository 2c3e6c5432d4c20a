"""Processors of the user's own: what they are given, and what they may do.

    class Deduplicate:
        def init(self, context):
            self.context, self.seen = context, context.get_state_store("seen")

        def process(self, record):
            if self.seen.put_if_absent(record.key, record.value) is None:
                self.context.forward(record)

    stream.process(Deduplicate, "seen")

A plain function of (record, context) will do where nothing has to be set up: `stream.process(lambda: function)`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

Headers = tuple[tuple[str, bytes | None], ...]


class PunctuationType(Enum):
    """Which clock drives a punctuation."""

    STREAM_TIME = "stream time"
    WALL_CLOCK_TIME = "wall-clock time"


@dataclass(frozen=True)
class Record:
    """A record on its way."""

    key: Any
    value: Any
    timestamp_ms: int
    headers: Headers = ()

    def with_key(self, key: Any) -> Record:
        return replace(self, key=key)

    def with_value(self, value: Any) -> Record:
        return replace(self, value=value)

    def with_timestamp(self, timestamp_ms: int) -> Record:
        return replace(self, timestamp_ms=timestamp_ms)


class Cancellable(Protocol):
    """A punctuation that can be stopped."""

    def cancel(self) -> None: ...


class ProcessorContext(Protocol):
    """What a processor may ask for and do."""

    def forward(self, record: Record) -> None:
        """Hand a record to what is downstream."""

    def get_state_store(self, name: str) -> Any:
        """A store that was named where the processor was added."""

    def schedule(self, interval_ms: int, kind: PunctuationType, call: Callable[[int], None]) -> Cancellable:
        """Call a function with the time, at an interval of that time."""

    @property
    def current_stream_time_ms(self) -> int: ...

    @property
    def current_system_time_ms(self) -> int: ...

    @property
    def record_metadata(self) -> Any:
        """(topic, partition, offset) of the record, or None in a punctuation."""


class Processor(Protocol):
    """What `supplier()` returns; `init` and `close` may be missing."""

    def process(self, record: Record) -> None: ...
