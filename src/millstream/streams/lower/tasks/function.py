"""What Spark calls in its Python workers: a partition's records in, records for topics out.

A worker keeps its tasks between micro-batches, each with the token of the try that it has last done. The driver says
which tries were committed. A task whose last try is not among them knows what never happened, and is made anew from the
changelogs. While a try is under way the task is not kept: if it fails, it is gone.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from millstream.streams.lower.tasks.partition import Out, PartitionTask
from millstream.streams.lower.tasks.restoring import Restorable, catch_up, read_back

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OUTPUT: Final = (
    "topic string, partition int, key binary, value binary, timestamp bigint, "
    "headers array<struct<key:string,value:binary>>"
)
_OUTPUT_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        (
            "headers",
            pa.list_(pa.field("element", pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))),
        ),
    ]
)
_ROWS_MAX: Final = 10_000
_tasks: dict[tuple[str, int, int], tuple[str, PartitionTask]] = {}


@dataclass(frozen=True)
class TaskFunction:
    """Given to mapInArrow: one try of one micro-batch."""

    # (plan, sub-topology, application id), pickled once for all batches: a worker that has the task needs none of it.
    program: bytes
    run_id: str
    number: int
    token: str
    committed: frozenset[str]
    state: Restorable
    connection: Mapping[str, str]
    now_ms: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by_partition: dict[int, list[Any]] = {}
        for batch in batches:
            collect_records(batch, by_partition)
        for partition in sorted(by_partition):
            out = self._run(partition, by_partition.pop(partition))
            for first in range(0, len(out), _ROWS_MAX):
                yield as_batch(out[first : first + _ROWS_MAX])

    def _run(self, partition: int, records: list[Any]) -> list[Out]:
        place = (self.run_id, self.number, partition)
        token, task = _tasks.pop(place, ("", None))
        if task is None or token not in self.committed:
            plan, part, application_id = pickle.loads(self.program)  # noqa: S301  # the driver made it
            task = PartitionTask(plan, part, application_id, partition, self.now_ms)
        catch_up(
            task,
            self.number,
            partition,
            self.state,
            partial(read_back, self.state.ids, self.connection, self.state.patience_ms),
        )
        # The topics' records come in any order, each topic's own are sorted.
        records.sort(key=lambda record: (record[0], record[5]))
        out = task.run(records, self.now_ms)
        _forget_others(self.run_id)
        _tasks[place] = (self.token, task)
        return out


def _forget_others(run_id: str) -> None:
    """Tasks of applications that have ended, or were started again, are not asked for any more."""
    application, _, _ = run_id.partition("/")
    for place in [place for place in _tasks if place[0] != run_id and place[0].startswith(f"{application}/")]:
        _tasks.pop(place)[1].close()


def collect_records(batch: pa.RecordBatch, by_partition: dict[int, list[Any]]) -> None:
    """Records as a task takes them, added to those of their partition; times in milliseconds."""
    topics, keys, values, times, headers, offsets, partitions = (
        batch.column(name).to_pylist()
        for name in ("topic", "key", "value", "timestamp", "headers", "offset", "partition")
    )
    shown = [() if held is None else tuple((each["key"], each["value"]) for each in held) for held in headers]
    rows = zip(topics, keys, values, times, shown, offsets, strict=True)
    for partition, record in zip(partitions, rows, strict=True):
        found = by_partition.get(partition)
        if found is None:
            found = by_partition[partition] = []
        found.append(record)


def as_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Records without headers as the writer takes them."""
    if not rows:
        return _OUTPUT_SCHEMA.empty_table()
    columns = zip(zip(*rows, strict=True), _OUTPUT_SCHEMA, strict=True)
    return pa.table([pa.array(column, field.type) for column, field in columns], schema=_OUTPUT_SCHEMA)


def as_batch(out: list[Out]) -> pa.RecordBatch:
    """Records as the writer takes them."""
    headers = [[dict(zip(("key", "value"), each, strict=True)) for each in record.headers or ()] for record in out]
    columns = [list(column) for column in zip(*(record[:5] for record in out), strict=True)]
    return pa.RecordBatch.from_arrays(
        [
            pa.array(column, field.type)
            for column, field in zip([*columns, [each or None for each in headers]], _OUTPUT_SCHEMA, strict=True)
        ],
        schema=_OUTPUT_SCHEMA,
    )
