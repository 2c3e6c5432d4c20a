"""From a batch's rows to writer tasks, so that each output partition has one.

Rows without keys need no shuffle where there are partitions enough: each task takes one of its own.
Rows with keys go where Java's producer would send them. Spark has no such hash, so the key column, and only that, takes
a turn through Python as whole Arrow columns; then Spark moves each row to the task of its partition. A column
`partition` decides itself, and where it is null the key does.
"""

from __future__ import annotations

from array import array
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from millstream.arrow.encoding import bytes_column
from millstream.records import _scatter
from millstream.spark.clients import client_for
from millstream.spark.exactly_once_stages import refuse_what_ran_again
from millstream.spark.exactly_once_task import RESULT, Turn, WriteTask, running_task
from millstream.spark.exactly_once_watch import FailureWatch
from millstream.spark.prepared import PreparedMap

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark import SparkContext
    from pyspark.sql import Column, DataFrame, Row

    from millstream.client.client import Client
    from millstream.client.sync import SyncClient
    from millstream.client.transactions import Transaction
    from millstream.records.codecs import Codec

# How long a second attempt of a task waits where speculation is on: long enough for a slow original to end.
COPY_WAITS_S: Final = 120
_STICKY_ROWS: Final = 2_000
_WRITER: Final = "writer task"
_NO_SIZES: Final = memoryview(array("i"))


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a query become records."""

    options: Mapping[str, str]
    topic: str | None
    columns: tuple[str, ...]
    codec: Codec
    # What Spark has been told of: from batch to batch it is the same.
    _prepared: dict[Any, PreparedMap] = field(default_factory=dict, init=False, repr=False, compare=False)
    _routes: dict[Any, Route] = field(default_factory=dict, init=False, repr=False, compare=False)

    def write(self, batch: DataFrame, client: SyncClient, transaction: Transaction | None, batch_id: int) -> list[Row]:
        """Write a batch and wait for it; a row for each partition that something was written to."""
        context = batch.sparkSession.sparkContext
        if transaction is None:
            Turn(batch_id).give_to_jobs(context)
            return self._writing(self.columns).over(batch).collect()
        copies = speculates(context)
        turn = Turn(batch_id, transaction, copy_waits_s=COPY_WAITS_S if copies else 0)
        rows, columns, own_partitions = self._arranged(batch, client, context.defaultParallelism, batch_id)
        replace(turn, own_partitions=own_partitions).give_to_jobs(context)
        with FailureWatch(context, transaction) if copies else nullcontext():
            written = self._writing(columns).over(rows).collect()
        refuse_what_ran_again(context, written)
        return written

    def _writing(self, columns: tuple[str, ...]) -> PreparedMap:
        # Tests have writers of their own, which they put in while a query runs.
        key = (WriteTask, columns)
        if key not in self._prepared:
            known = tuple(name for name in columns if name != _WRITER)
            task = WriteTask(self.options, self.topic, known, self.codec)
            self._prepared[key] = PreparedMap(task, columns, RESULT)
        return self._prepared[key]

    def _arranged(
        self, batch: DataFrame, client: SyncClient, parallelism: int, batch_id: int
    ) -> tuple[DataFrame, tuple[str, ...], int]:
        """The rows, their columns, and the number of partitions where each task is to take one of its own."""
        if self.topic is None:
            return *self._sent(batch, self._route_by_topic, parallelism), 0
        partitions = client.run(partitions_of, self.topic)
        if "key" not in self.columns and "partition" not in self.columns:
            if partitions >= parallelism:
                return batch.coalesce(partitions), self.columns, partitions
            # So few writers would not keep up with as many readers.
            return *self._sent(batch, _gathering, partitions), partitions
        # Rows that have neither a key nor a partition go to one that changes from batch to batch.
        without_key = batch_id % partitions if "key" not in self.columns else 0
        return *self._sent(batch, self._route_by_partition, min(partitions, parallelism), partitions, without_key), 0

    def _sent(self, batch: DataFrame, make: Callable[..., Route], *how: int) -> tuple[DataFrame, tuple[str, ...]]:
        """The rows where they are to be written, by a route that is known or made."""
        key = (make.__name__, how)
        if key not in self._routes:
            self._routes[key] = make(*how)
        route = self._routes[key]
        columns = tuple(dict.fromkeys((*self.columns, route.column)))
        return batch.withColumn(route.column, route.value).repartitionById(route.tasks, route.task), columns

    def _route_by_partition(self, tasks: int, partitions: int, without_key: int) -> Route:
        from pyspark.sql import functions as f

        decided = _partition_of_key(partitions)(f.col("key")) if "key" in self.columns else f.lit(without_key)
        chosen = f.coalesce(f.col("partition").cast("int"), decided) if "partition" in self.columns else decided
        return Route("partition", chosen, tasks, f.pmod(f.col("partition"), f.lit(tasks)))

    def _route_by_topic(self, tasks: int) -> Route:
        from pyspark.sql import functions as f

        key = f.col("key") if "key" in self.columns else f.lit(None).cast("binary")
        chosen = _partition_of_topic_and_key(dict(self.options))(f.col("topic"), key)
        if "partition" in self.columns:
            chosen = f.coalesce(f.col("partition").cast("int"), chosen)
        task = f.pmod(f.crc32(f.col("topic").cast("binary")) + f.col("partition"), f.lit(tasks)).cast("int")
        return Route("partition", chosen, tasks, task)


class Route(NamedTuple):
    """A column to add, and which of so many tasks a row then goes to."""

    column: str
    value: Column
    tasks: int
    task: Column


def _gathering(tasks: int) -> Route:
    from pyspark.sql import functions as f

    return Route(_WRITER, f.pmod(f.spark_partition_id(), f.lit(tasks)), tasks, f.col(f"`{_WRITER}`"))


def speculates(context: SparkContext) -> bool:
    """Whether Spark may start copies of tasks that are slow; it takes `TRUE` for an answer, too."""
    return context.getConf().get("spark.speculation", "false").strip().lower() == "true"


async def partitions_of(client: Client, topic: str) -> int:
    """How many partitions a topic has; one that is missing is made if the broker makes topics."""
    found = await client.retrying(lambda: client.metadata.topic(topic, create=True))
    return len(found.partitions)


def _partition_of_key(partitions: int) -> Callable[[Column], Column]:
    def partition(key: pa.Array) -> pa.Array:
        return choose(key, partitions, Turn.of_task(running_task()).number)

    return _arrow_udf(partition)


def _partition_of_topic_and_key(options: dict[str, str]) -> Callable[[Column, Column], Column]:
    def partition(topic: pa.Array, key: pa.Array) -> pa.Array:
        return choose_by_topic(topic, key, options, Turn.of_task(running_task()).number)

    return _arrow_udf(partition)


def _arrow_udf(function: Callable[..., pa.Array]) -> Callable[..., Column]:
    """Whole Arrow columns in, a column of partitions out."""
    from pyspark.sql import functions

    of_spark: Any = functions
    made: Callable[..., Column] = of_spark.arrow_udf(function, "int")
    return made


def choose(key: pa.Array, partitions: int, turn: int) -> pa.Array:
    """A partition for each key; rows without one take turns, many at a time."""
    chosen = array("i", b"\xff" * (4 * len(key)))
    column = bytes_column(key, "key")
    if len(column.ends):
        _scatter.partitions_of_keys(
            column.ends, column.data, column.valid, column.valid_at, partitions, memoryview(chosen)
        )
    sticky_bytes = _scatter.RECORD_OVERHEAD * _STICKY_ROWS
    _scatter.spread(memoryview(chosen), _NO_SIZES, partitions, turn % partitions, 0, sticky_bytes)
    return pa.Array.from_buffers(pa.int32(), len(key), [None, pa.py_buffer(chosen)], null_count=0)


def choose_by_topic(topic: pa.Array, key: pa.Array, options: Mapping[str, str], turn: int) -> pa.Array:
    """The same where each row names its topic."""
    import pyarrow.compute as pc

    if topic.null_count:
        raise ValueError("a row has no topic")
    client = client_for(options, expected=True)
    found = pa.nulls(len(topic), pa.int32())
    for name in topic.unique().to_pylist():
        here = pc.equal(topic, name)
        chosen = choose(key.filter(here), client.run(partitions_of, name), turn)
        found = pc.replace_with_mask(found, here, chosen)
    return found
