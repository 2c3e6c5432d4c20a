"""How the queries of a session are doing, while they run.

Spark tells a listener after each batch what it did. `Watch` keeps the last word of each query; `progress_table.py`
shows it in the terminal and `progress_metrics.py` gives it to Prometheus:

    with millstream.spark.watch(spark):        # a table that stays up to date
        query.awaitTermination()
    millstream.spark.expose(spark, port=9400)  # http://localhost:9400/metrics

Lag is what the source knew to be there when the batch was planned, less what the batch took. For what other tools see,
the query's consumer group has it too.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from millstream.spark.exactly_once_checkpoint import offsets_in
from millstream.spark.values import COUNTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prometheus_client import CollectorRegistry
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from millstream.client.grouping import TopicPartition
    from millstream.spark.progress_table import LiveTable

RUNNING: Final = "running"
IDLE: Final = "waiting"
ENDED: Final = "ended"
FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The last word of one query, and the sums since it was first heard of."""

    id: str
    name: str
    state: str = RUNNING
    batch_id: int = -1
    rows: int = 0
    rows_in_all: int = 0
    dropped_in_all: int = 0
    input_per_s: float = 0
    processed_per_s: float = 0
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    lag: Mapping[TopicPartition, int] = field(default_factory=dict)
    watermark: datetime | None = None
    state_rows: int = 0
    error: str = ""

    @property
    def batch_ms(self) -> int:
        return self.phases_ms.get("triggerExecution", 0)

    @property
    def lag_in_all(self) -> int | None:
        """None where no source says how much there is."""
        return sum(self.lag.values()) if self.lag else None


def followed_by(before: Snapshot, progress: Mapping[str, Any]) -> Snapshot:
    """The next word of a query, from the JSON of its progress."""
    rows = int(progress.get("numInputRows") or 0)
    lag: dict[TopicPartition, int] = {}
    for source in progress.get("sources", ()):
        lag.update(_lag(source))
    dropped = sum(
        int(observed.get("dropped") or 0)
        for name, observed in (progress.get("observedMetrics") or {}).items()
        if name.startswith(COUNTED)
    )
    watermark = (progress.get("eventTime") or {}).get("watermark")
    return Snapshot(
        id=before.id,
        name=progress.get("name") or before.name,
        batch_id=int(progress.get("batchId", -1)),
        rows=rows,
        rows_in_all=before.rows_in_all + rows,
        dropped_in_all=before.dropped_in_all + dropped,
        input_per_s=float(progress.get("inputRowsPerSecond") or 0),
        processed_per_s=float(progress.get("processedRowsPerSecond") or 0),
        phases_ms=dict(progress.get("durationMs") or {}),
        lag=lag,
        watermark=datetime.fromisoformat(watermark) if watermark else before.watermark,
        state_rows=sum(int(each.get("numRowsTotal") or 0) for each in progress.get("stateOperators") or ()),
    )


def _lag(source: Mapping[str, Any]) -> dict[TopicPartition, int]:
    latest, end = (offsets_in(_text(source.get(name))) for name in ("latestOffset", "endOffset"))
    return {place: max(0, offset - end.get(place, 0)) for place, offset in latest.items()}


def _text(offset: object) -> str:
    return offset if isinstance(offset, str) else json.dumps(offset)


class Watch(StreamingQueryListener):
    """Listens to a session's queries. Spark calls from a thread of its own."""

    def __init__(self) -> None:
        self._queries: dict[str, Snapshot] = {}
        # The batch that a query was met at. Spark's events come later than what a query says of itself.
        self._met_at: dict[str, int] = {}
        self._changing = threading.Lock()

    def listen(self, spark: SparkSession) -> None:
        """Hear of all queries from now on, and of those that run already what they say themselves."""
        spark.streams.addListener(self)
        for query in spark.streams.active:
            last = query.lastProgress
            self.meet(str(query.id), query.name, None if last is None else json.loads(last.json))

    def meet(self, query_id: str, name: str | None, progress: Mapping[str, Any] | None) -> None:
        """A query that runs already, with its last progress; one that was heard of meanwhile is known better."""
        with self._changing:
            if query_id in self._queries:
                return
            met = Snapshot(query_id, name or query_id[:8])
            self._queries[query_id] = met if progress is None else followed_by(met, progress)
            self._met_at[query_id] = self._queries[query_id].batch_id

    def snapshots(self) -> list[Snapshot]:
        """One for each query, in the order in which they started."""
        with self._changing:
            return list(self._queries.values())

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802  # Spark's name, as all below
        with self._changing:
            self._met_at.pop(str(event.id), None)
            self._queries[str(event.id)] = Snapshot(str(event.id), event.name or str(event.id)[:8])

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = json.loads(event.progress.json)
        with self._changing:
            before = self._known(str(progress["id"]))
            if int(progress.get("batchId", -1)) > self._met_at.get(before.id, -2):
                self._queries[before.id] = followed_by(before, progress)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        self._change(str(event.id), state=IDLE)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        error = event.exception or ""
        self._change(str(event.id), state=FAILED if error else ENDED, error=error)

    def _known(self, query_id: str) -> Snapshot:
        return self._queries.get(query_id) or Snapshot(query_id, query_id[:8])

    def _change(self, query_id: str, **changes: Any) -> None:
        from dataclasses import replace

        with self._changing:
            self._queries[query_id] = replace(self._known(query_id), **changes)


def watch(spark: SparkSession, *, every_s: float = 0.5) -> LiveTable:
    """A table of all queries in the terminal, up to date for as long as the block lasts."""
    from millstream.spark.progress_table import LiveTable

    return LiveTable(spark, every_s=every_s)


def expose(spark: SparkSession, *, port: int | None = None, registry: CollectorRegistry | None = None) -> Watch:
    """Give the session's queries to Prometheus: on a port of its own, or in a registry that is served already."""
    from millstream.spark.progress_metrics import register

    listener = Watch()
    register(listener, port=port, registry=registry)
    listener.listen(spark)
    return listener
