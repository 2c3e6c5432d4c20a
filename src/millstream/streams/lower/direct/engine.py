"""Who works off a micro-batch, Spark or the driver itself, and who has the state meanwhile.

The state is in one place. It comes here when micro-batches have been small for a while, or when the query starts with a
small one, and goes back with the first that is large. What a try did that was not committed is thrown away: then Spark
reads everything back from the changelogs, as it does for its own tries.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from millstream.records.codecs import Codec
from millstream.streams.lower.direct.partitions import DirectTasks
from millstream.streams.lower.direct.records import read_records, write_records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from millstream.client.sync import SyncClient
    from millstream.client.transactions import Transaction
    from millstream.streams.lower.native.engine import NativeEngine
    from millstream.streams.lower.sinking import Span
    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.plan.plan import Plan
    from millstream.streams.settings import Settings

# A micro-batch of so many records takes the interpreter less time than Spark takes to plan one.
RECORDS_MAX: Final = 5_000
# Nor may they be larger together, since they and what comes of them are in the driver's memory as Python objects.
BYTES_MAX: Final = 8 << 20
# So many rows of state are taken from Spark, and with twice as many they go back.
ROWS_MAX: Final = 50_000
# So many small micro-batches in a row make it worth moving the state.
PATIENCE: Final = 3
_PATIENCE_MAX: Final = 1_000


class DirectEngine:
    """One sub-topology of one running application, beside the engine that has Spark do the work."""

    def __init__(self, plan: Plan, part: SubTopology, settings: Settings, native: NativeEngine) -> None:
        self._plan = plan
        self._part = part
        self._native = native
        self._application_id = settings.application_id
        # A client of its own: one that fails is closed, and must not take other queries along.
        client_id = settings.connection.get("client.id", settings.application_id)
        self._connection = {**settings.connection, "client.id": f"{client_id}-{part.number}"}
        self._codec = Codec[settings.compression.upper()]
        self._records_max = RECORDS_MAX if settings.direct_records_max is None else settings.direct_records_max
        # None while Spark has the state.
        self._tasks: DirectTasks | None = None
        self._tried = -1
        self._small_in_a_row = 0
        self._patience = PATIENCE

    def write(
        self, spark: SparkSession, client: SyncClient, transaction: Transaction | None, batch_id: int, span: Span
    ) -> list[dict[str, Any]] | None:
        """Work a micro-batch off and write what comes of it; None if it is for Spark, which then has the state."""
        if self._tried >= batch_id:
            # It comes again, so what was done was not committed.
            self._tasks = None
        if span.size > self._records_max:
            self._small_in_a_row = 0
            self._give_back(spark, batch_id)
            return None
        self._small_in_a_row += 1
        if self._tasks is not None and len(self._tasks) > 2 * ROWS_MAX:
            self._give_back(spark, batch_id)
            self._wait_longer()
        if self._tasks is None and not self._native.is_fresh and self._small_in_a_row < self._patience:
            return None
        records = read_records(span, self._connection, BYTES_MAX)
        if records is None:
            self._give_back(spark, batch_id)
            self._wait_longer()
            return None
        if self._tasks is None and not self._take_over(spark, client, batch_id, span):
            return None
        assert self._tasks is not None
        self._tried = batch_id
        out = self._tasks.run(records, int(time.time() * 1000))
        return write_records(out, client, transaction, self._codec)

    def _take_over(self, spark: SparkSession, client: SyncClient, batch_id: int, span: Span) -> bool:
        """Have the state here, unless it is too large."""
        self._native.begin(spark, client, batch_id, span)
        state = self._native.give(ROWS_MAX)
        if state is None:
            self._wait_longer()
            return False
        self._tasks = DirectTasks(self._plan, self._part, self._application_id, state)
        self._patience = PATIENCE
        return True

    def _wait_longer(self) -> None:
        """A state that was too large is not asked for again and again, and large records are not read twice each."""
        self._small_in_a_row = 0
        self._patience = min(2 * self._patience, _PATIENCE_MAX)

    def _give_back(self, spark: SparkSession, batch_id: int) -> None:
        if self._tasks is not None:
            self._native.take(spark, batch_id, self._tasks.state())
            self._tasks = None
