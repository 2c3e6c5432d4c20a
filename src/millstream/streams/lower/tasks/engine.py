"""The driver's side of the engine for Python functions: which try this is, which were committed, how far state goes.

A micro-batch starts from what was committed before it. After a commit the driver knows where its changelog records
ended, since its own tasks wrote them; otherwise it asks for the last stable offsets, when nothing of ours is open any
more. The tables' topics are read up to where the micro-batch starts.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from millstream.client.offsets import LATEST, list_offsets
from millstream.spark.options import Selection
from millstream.spark.planning import find_present
from millstream.streams.lower.ends import patience_ms, settled_ends
from millstream.streams.lower.native.pruning import TYPES, schema_of
from millstream.streams.lower.subtopologies import global_tables
from millstream.streams.lower.tasks.function import OUTPUT, TaskFunction
from millstream.streams.lower.tasks.pickling import pickled
from millstream.streams.lower.tasks.restoring import Restorable, stores_by_topic
from millstream.streams.lower.topics import tasks_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.sync import SyncClient
    from millstream.streams.lower.sinking import Span
    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.plan import Plan
    from millstream.streams.settings import Settings

_TOKENS_KEPT = 64


class TaskEngine:
    """One sub-topology of one running application."""

    format = "millstream"
    schema = schema_of(TYPES)
    only_topic: str | None = None
    # A worker has the records of a partition in memory, as Python's objects.
    offsets_max = 200_000

    def __init__(self, plan: Plan, part: SubTopology, settings: Settings, partitions: int, run_id: str) -> None:
        self._part = part
        self._partitions = partitions
        self._run_id = run_id
        self._connection = settings.connection
        self._patience_ms = patience_ms(settings.transaction_timeout_ms)
        self._program = pickled((plan, part, settings.application_id), plan)
        self._stores = stores_by_topic(part, settings.application_id)
        self._tables = [topic for topic, _ in part.table_stores]
        self._tasks_topic = tasks_topic(settings.application_id)
        self._globals = tuple(node.topic for node in global_tables(plan))
        self._ids: dict[str, str] = {}
        self._committed: list[str] = []
        self._tried: tuple[int, str] | None = None
        self._tries = 0
        self._ends: dict[TopicPartition, int] | None = None

    def output(self, batch: DataFrame, client: SyncClient, batch_id: int, span: Span) -> DataFrame:
        """What a micro-batch writes, as rows; nothing has run yet."""
        if self._tried is not None and self._tried[0] < batch_id:
            self._committed = [*self._committed[-_TOKENS_KEPT:], self._tried[1]]
        else:
            self._ends = None
        self._tries += 1
        token = f"{batch_id}/{self._tries}"
        self._tried = (batch_id, token)
        if self._ends is None:
            self._ends, self._ids = client.run(self._ask_ends)
        ends = {**self._ends, **{place: end for place, end in span.starts.items() if place[0] in self._tables}}
        if self._globals:
            ends.update(client.run(self._ask_global_ends))
        function = TaskFunction(
            self._program,
            self._run_id,
            self._part.number,
            token,
            frozenset(self._committed),
            Restorable(self._stores, self._tasks_topic, self._globals, ends, self._ids, self._patience_ms),
            self._connection,
            int(time.time() * 1000),
        )
        return self._by_task(batch).mapInArrow(function, OUTPUT)

    def written(self, rows: list[Row]) -> None:
        """Where the records ended that were just written; if they are committed, state is read up to there."""
        assert self._ends is not None
        for row in rows:
            place = (row["topic"], row["partition"])
            if place in self._ends:
                self._ends[place] = row["last_offset"] + 1

    def _by_task(self, batch: DataFrame) -> DataFrame:
        """A partition's records in one task; those of one topic are together as they come."""
        from pyspark.sql import functions as f

        rows = batch.withColumn("timestamp", f.unix_millis("timestamp"))
        if len(self._part.topics) == 1:
            return rows
        tasks = min(self._partitions, batch.sparkSession.sparkContext.defaultParallelism)
        return rows.repartitionById(tasks, f.pmod(f.col("partition"), f.lit(tasks)))

    async def _ask_ends(self, client: Client) -> tuple[dict[TopicPartition, int], dict[str, str]]:
        changelogs = [topic for topic in self._stores if topic not in self._tables] + [self._tasks_topic]
        present = await find_present(client, Selection(names=tuple(dict.fromkeys([*self._stores, *changelogs]))))
        places = [place for place in present.places if place[0] in changelogs]
        ends = await settled_ends(client, places, self._patience_ms)
        ids = present.ids
        if self._globals:
            ids = {**ids, **(await find_present(client, Selection(names=self._globals))).ids}
        return ends, ids

    async def _ask_global_ends(self, client: Client) -> dict[TopicPartition, int]:
        present = await find_present(client, Selection(names=self._globals))
        found: Any = await list_offsets(client, dict.fromkeys(present.places, LATEST), read_committed=True)
        return {place: each.offset for place, each in found.items()}
