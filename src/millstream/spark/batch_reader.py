"""A batch read: what the topics hold when it is planned, from start to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from millstream.spark.clients import client_for
from millstream.spark.ranges import Range, tasks_of
from millstream.spark.reading import read_range
from millstream.spark.worker_memory import keep_what_is_loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millstream.client.client import Client
    from millstream.spark.json_columns import JsonColumns
    from millstream.spark.options import ReadOptions


class BatchReader(DataSourceReader):
    """Plans on the driver, reads on the executors; what both share is the options."""

    def __init__(self, options: ReadOptions, schema: pa.Schema, json: JsonColumns | None = None) -> None:
        self._options = options
        self._schema = schema
        self._json = json

    def partitions(self) -> list[InputPartition]:
        options = self._options
        ranges = client_for(options.connection).run(plan_batch, options)
        tasks = tasks_of(ranges, at_least=options.partitions_min, records_max=options.records_per_partition_max)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Where there is nothing to read, Spark makes a task without a range.
        if partition.value is not None:
            batches = read_range(partition.value, self._schema, self._options)
            yield from batches if self._json is None else self._json.of(batches, partition.value)
            keep_what_is_loaded()


async def plan_batch(client: Client, options: ReadOptions) -> list[Range]:
    from millstream.spark.planning import find_ends, find_present, find_starts, refuse_backwards

    present = await find_present(client, options.selection)
    starts = await find_starts(client, present, options)
    ends = await find_ends(client, present, options)
    await refuse_backwards(client, starts, ends, options)
    return [
        Range(topic, present.ids[topic], index, starts[topic, index], ends[topic, index])
        for topic, index in present.places
    ]
