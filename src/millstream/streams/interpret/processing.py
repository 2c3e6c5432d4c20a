"""Running a user's processor: its context, its stores, its punctuations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from millstream.streams.errors import TopologyError
from millstream.streams.processors import PunctuationType, Record

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.streams.interpret.task import Punctuation, RecordMetadata, Task
    from millstream.streams.plan.nodes import Process

    StreamStep = Callable[[Any, Any, int, Any], None]


class DriverContext:
    """A ProcessorContext on the driver's task."""

    def __init__(self, task: Task, node: Process, stores: dict[str, Any], forward: StreamStep) -> None:
        self._task = task
        self._node = node
        self._stores = stores
        self._forward = forward
        self.record: Record | None = None

    def forward(self, record: Record) -> None:
        if self._node.keeps_key and self.record is not None and record.key != self.record.key:
            raise TopologyError(f"{self._node.name} must not change the key: use process, not process_values")
        self._forward(record.key, record.value, record.timestamp_ms, record.headers)

    def get_state_store(self, name: str) -> Any:
        if name not in self._node.stores:
            raise TopologyError(f"{self._node.name} was not given the store {name!r}: name it in process(...)")
        return self._stores[name]

    def schedule(self, interval_ms: int, kind: PunctuationType, call: Callable[[int], None]) -> Punctuation:
        return self._task.schedule(interval_ms, call, stream_time=kind is PunctuationType.STREAM_TIME)

    @property
    def current_stream_time_ms(self) -> int:
        return self._task.stream_time_ms

    @property
    def current_system_time_ms(self) -> int:
        return self._task.wall_clock_ms

    @property
    def record_metadata(self) -> RecordMetadata | None:
        return self._task.metadata


def run_processor(
    task: Task, node: Process, stores: dict[str, Any], forward: StreamStep
) -> tuple[StreamStep, Callable[[], None]]:
    """The step for a user's processor, and what closes it."""
    context = DriverContext(task, node, stores, forward)
    processor = node.supplier()
    run = getattr(processor, "process", None)
    if run is None:
        if not callable(processor):
            raise TopologyError(f"{node.name}: {processor!r} has no method `process`")
        plain = processor

        def run(record: Record) -> None:
            plain(record, context)
    elif hasattr(processor, "init"):
        processor.init(context)

    def process(key: Any, value: Any, timestamp: int, headers: Any) -> None:
        before = context.record
        context.record = Record(key, value, timestamp, headers)
        run(context.record)
        context.record = before

    return process, getattr(processor, "close", lambda: None)
