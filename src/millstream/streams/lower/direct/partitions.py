"""The tasks of a sub-topology in one process, and their state as Spark's engine gives and takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from millstream.streams.lower.native.engine import State
from millstream.streams.lower.tasks.partition import PartitionTask
from millstream.streams.lower.tasks.wires import pack
from millstream.streams.plan.nodes import Aggregate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.lower.tasks.partition import Out
    from millstream.streams.plan.plan import Plan

_STATE: Final = pa.schema(
    [("partition", pa.int32()), ("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())]
)


class DirectTasks:
    """All partitions of a sub-topology; a task is made when there is something for it."""

    def __init__(self, plan: Plan, part: SubTopology, application_id: str, state: State) -> None:
        self._plan = plan
        self._part = part
        self._application_id = application_id
        self._aggregates = [node for node in plan.nodes if node.name in part.nodes and isinstance(node, Aggregate)]
        self._tasks: dict[int, PartitionTask] = {}
        for node in self._aggregates:
            for partition, key, value, timestamp_ms in _rows(state.records.get(node.name)):
                self._task(partition).stores[node.store.name].put_back(key, value, timestamp_ms)
            for partition, observed_ms in state.observed_ms.get(node.name, {}).items():
                self._task(partition).put_back(node.name.encode() + b"\0", pack([observed_ms, None]))
        for task in self._tasks.values():
            task.load_kept()

    def run(self, records: Mapping[int, list[Any]], now_ms: int) -> list[Out]:
        """A micro-batch's records, by partition and each topic's in order; what goes to topics."""
        out: list[Out] = []
        for partition in sorted(records):
            out += self._task(partition).run(records[partition], now_ms)
        return out

    def __len__(self) -> int:
        """Rows of state."""
        return sum(len(store) for task in self._tasks.values() for store in task.stores.values())

    def state(self) -> State:
        """All that they hold between two micro-batches."""
        records: dict[str, pa.Table] = {}
        observed: dict[str, dict[int, int]] = {}
        for node in self._aggregates:
            rows = [
                (partition, *change)
                for partition, task in self._tasks.items()
                for change in task.stores[node.store.name].held()
            ]
            records[node.name] = _table(rows)
            kept = {partition: task.kept(node.name) for partition, task in self._tasks.items()}
            observed[node.name] = {partition: held[0] for partition, held in kept.items() if held}
        return State(records, observed)

    def _task(self, partition: int) -> PartitionTask:
        task = self._tasks.get(partition)
        if task is None:
            task = PartitionTask(self._plan, self._part, self._application_id, partition, 0)
            self._tasks[partition] = task
        return task


def _rows(table: pa.Table | None) -> list[tuple[int, bytes, bytes | None, int]]:
    if table is None:
        return []
    return list(zip(*(table.column(name).to_pylist() for name in _STATE.names), strict=True))


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns: Any = zip(*rows, strict=True) if rows else [()] * len(_STATE)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, _STATE, strict=True)]
    return pa.table(arrays, schema=_STATE)
