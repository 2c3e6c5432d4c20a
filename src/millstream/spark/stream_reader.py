"""A streaming read, as Spark drives it.

Spark asks for the latest offset before each batch and writes the answer into its checkpoint; a batch is what lies
between two answers. So everything that must survive a restart is in the offsets (see offsets.py), and what has become
of the topics is decided when a batch's end is chosen (see following.py).
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from millstream.spark.clients import client_for
from millstream.spark.offsets import Offsets
from millstream.spark.ranges import tasks_of
from millstream.spark.reading import read_range
from millstream.spark.worker_memory import keep_what_is_loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit

    from millstream.spark.json_columns import JsonColumns
    from millstream.spark.options import ReadOptions

_UNLIMITED: Final = 1 << 62


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives on the driver for as long as the query; `read` runs on executors, with the options and nothing else."""

    def __init__(self, options: ReadOptions, schema: pa.Schema, json: JsonColumns | None = None) -> None:
        self._options = options
        self._schema = schema
        self._json = json
        self._target: Offsets | None = None
        self._latest: Offsets | None = None
        # When a batch was last let through; as for Spark's own source, the first look after a start waits for nothing.
        self._let_through_s = -math.inf

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # Spark's name, as those below
        from millstream.spark.following import first_offsets

        return client_for(self._options.connection).run(first_offsets, self._options).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        if self._options.offsets_max is not None:
            return ReadMaxRows(self._options.offsets_max)
        # "All" is what Spark says for Trigger.Once, which waits for no minimum.
        return ReadAllAvailable() if self._options.offsets_min is None else ReadMaxRows(_UNLIMITED)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._look()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        from millstream.spark.following import limited, new_since

        latest = self._target or self._look()
        given = Offsets.from_json(start)
        begin, end = client_for(self._options.connection).run(new_since, given, latest, self._options)
        if begin.initial:
            self._let_through_s = time.monotonic()
            places = limited(begin.places, end.places, _most(limit))
            return Offsets(places, end.ids, begin=begin).to_json()
        if isinstance(limit, ReadMaxRows) and self._waits_for_more(begin, end):
            return start
        places = limited(begin.places, end.places, _most(limit))
        if places == given.places and end.ids == given.ids:
            # Spark compares texts: where nothing is new it must find the same.
            return start
        return Offsets(places, end.ids).to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return None if self._latest is None else self._latest.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        from millstream.spark.following import plan_between

        options = self._options
        places = (Offsets.from_json(start), Offsets.from_json(end))
        ranges = client_for(options.connection).run(plan_between, *places, options)
        tasks = tasks_of(ranges, at_least=options.partitions_min, records_max=options.records_per_partition_max)
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        batches = read_range(partition.value, self._schema, self._options)
        yield from batches if self._json is None else self._json.of(batches, partition.value)
        keep_what_is_loaded()

    def commit(self, end: dict[str, Any]) -> None:
        """Spark has it in the checkpoint, and nobody else needs to know."""

    def stop(self) -> None:
        """The process ends, and the client with it."""

    def _look(self) -> Offsets:
        from millstream.spark.following import latest_offsets

        self._latest = client_for(self._options.connection).run(latest_offsets, self._options)
        return self._latest

    def _waits_for_more(self, begin: Offsets, end: Offsets) -> bool:
        """Whether minOffsetsPerTrigger holds the batch back."""
        wanted = self._options.offsets_min
        if wanted is None or self._target is not None:
            return False
        new = sum(offset - begin.places[place] for place, offset in end.places.items())
        now_s = time.monotonic()
        waits = new < wanted and (now_s - self._let_through_s) * 1000 < self._options.trigger_delay_ms_max
        if not waits:
            self._let_through_s = now_s
        return waits


def _most(limit: ReadLimit) -> int:
    return limit.max_rows if isinstance(limit, ReadMaxRows) else _UNLIMITED
