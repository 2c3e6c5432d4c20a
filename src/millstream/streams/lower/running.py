"""A running application: its topics prepared, one query started for each sub-topology.

A query reads the topics of its sub-topology and gives each micro-batch to the engine and the sink. Where there is no
checkpoint yet, or any more, it starts at the offsets of the consumer group, or where `auto.offset.reset` says.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from millstream.client.groups import committed_offsets
from millstream.client.sync import SyncClient
from millstream.spark.exactly_once_sink import Sink, begin
from millstream.spark.starting import started
from millstream.streams.lower.beside import beside_of
from millstream.streams.lower.deciding import refuse_unknown
from millstream.streams.lower.direct.eligible import runs_directly
from millstream.streams.lower.direct.engine import DirectEngine
from millstream.streams.lower.losses import in_words_of_streams
from millstream.streams.lower.native.engine import NativeEngine
from millstream.streams.lower.native.json_source import JsonDataSource
from millstream.streams.lower.native.supported import why_not
from millstream.streams.lower.patterns import has_patterns, with_present_topics
from millstream.streams.lower.sinking import EngineLayout
from millstream.streams.lower.subtopologies import subtopologies
from millstream.streams.lower.tasks.engine import TaskEngine
from millstream.streams.lower.topics import prepare_topics
from millstream.streams.settings import AVAILABLE_NOW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from millstream.client.grouping import TopicPartition
    from millstream.streams.lower.beside import Beside
    from millstream.streams.lower.membership import Membership
    from millstream.streams.lower.purging import Purging
    from millstream.streams.lower.sinking import Engine
    from millstream.streams.lower.subtopologies import SubTopology
    from millstream.streams.lower.trimming import Trimming
    from millstream.streams.settings import Guarantee, Settings
    from millstream.streams.topology import Topology

log = logging.getLogger("millstream.streams")

_EARLIEST, _LATEST = -2, -1
_POLL_S = 0.2
_LOOK_S = 0.02
_GAP_S = 20.0


class Running:
    """What `Application.start` makes."""

    def __init__(
        self,
        topology: Topology,
        settings: Settings,
        spark: SparkSession | None,
        *,
        guarantee: Guarantee,
        trigger: str | None,
    ) -> None:
        # Where it has patterns, their topics are put in at every start.
        self._given_plan = self._plan = topology.plan
        self._settings = settings
        self._given = spark
        self._exactly_once = guarantee == "exactly_once_v2"
        self._trigger = trigger
        self._parts = subtopologies(self._plan)
        self.queries: list[StreamingQuery] = []
        self._beside: list[Membership | Trimming | Purging] = []
        self._letting_go = threading.Lock()
        self._all_started = False

    def start(self) -> None:
        """Prepare the topics and start all queries."""
        refuse_unknown(self._plan)
        from millstream import spark as millstream_spark

        spark = millstream_spark.session() if self._given is None else millstream_spark.register(self._given)
        spark.dataSource.register(JsonDataSource)
        with SyncClient(self._settings.connection) as client:
            self._find_topics(client)
            counts = client.run(prepare_topics, self._plan, self._settings)
            self._fence_others(client)
            places = self._committed(spark, client, counts)
        self.queries, self._all_started = [], False
        try:
            self._start_queries(spark, counts, places, self._start_beside())
        except BaseException:
            with suppress(Exception):  # why it did not start says more
                self.stop()
            raise
        self._all_started = True
        if not self.is_active:
            self._let_go()

    def _find_topics(self, client: SyncClient) -> None:
        if has_patterns(self._given_plan):
            self._plan = client.run(with_present_topics, self._given_plan, self._settings.application_id)
            self._parts = subtopologies(self._plan)

    def _start_queries(
        self,
        spark: SparkSession,
        counts: dict[str, int],
        places: dict[TopicPartition, int],
        beside: Beside,
    ) -> None:
        run_id = f"{self._settings.application_id}/{time.time_ns()}"
        for part in self._parts:
            partitions = max(counts[name] for name in self._names(part))
            engine: Engine
            reason = why_not(self._plan, part)
            if reason is None:
                engine = NativeEngine(self._plan, part, self._settings)
            else:
                log.info("sub-topology %d runs in Python: %s", part.number, reason)
                engine = TaskEngine(self._plan, part, self._settings, partitions, run_id)
            rows = self._read(spark, part, engine, counts, places)
            self._started(rows, part, engine, counts, beside)
        if self._trigger == AVAILABLE_NOW:
            threading.Thread(target=self._stop_when_done, name=f"until-done-{run_id}", daemon=True).start()

    def _start_beside(self) -> Beside:
        beside = beside_of(self._parts, self._settings)
        self._beside = [*beside]
        for each in beside:
            each.start()
        return beside

    def _let_go(self) -> None:
        """All has ended; the last to notice may be several."""
        with self._letting_go:
            beside, self._beside = self._beside, []
            for each in beside:
                try:
                    each.close()
                except Exception as error:  # noqa: BLE001  # the others are closed all the same
                    log.warning("%s was not closed: %s", type(each).__name__, error)

    def _stop_when_done(self) -> None:
        """Spark's own trigger of that name would not see what one query writes for another."""
        try:
            self.process_all_available()
        except Exception:  # noqa: BLE001  # why it ended is for who waits
            log.debug("%s failed", self._settings.application_id)
        self.stop()

    def _fence_others(self, client: SyncClient) -> None:
        """Whoever runs this application elsewhere can commit nothing from here on, so the offsets that are read now
        are those to go on from."""
        for part in self._parts if self._exactly_once else ():
            client.run(begin, self._transactional_id(part), self._settings.transaction_timeout_ms)

    def _transactional_id(self, part: SubTopology) -> str:
        return f"{self._settings.application_id}-{part.number}"

    def _committed(self, spark: SparkSession, client: SyncClient, counts: dict[str, int]) -> dict[TopicPartition, int]:
        """The group's offsets in topics that have no checkpoint. Others are not asked for: the answer would wait for
        what a query has left open, and which it ends itself when it goes on."""
        asked = [
            (name, index)
            for part in self._parts
            if not _has_batches(spark, self._checkpoint(part))
            for name in self._names(part)
            for index in range(counts[name])
        ]
        if not asked:
            return {}
        found = client.run(committed_offsets, self._settings.application_id, asked)
        return {place: each.offset for place, each in found.items()}

    def _checkpoint(self, part: SubTopology) -> str:
        return str(PurePosixPath(self._settings.folder) / self._settings.application_id / str(part.number))

    def _started(
        self, rows: DataFrame, part: SubTopology, engine: Engine, counts: dict[str, int], beside: Beside
    ) -> StreamingQuery:
        place = len(self.queries)

        def start() -> StreamingQuery:
            query = self._start_query(rows, part, engine, counts, beside)
            # Now already, so that it is stopped with the others if this is interrupted.
            self.queries[place:] = [query]
            return query

        # One after the other: all at once, their sources would take each other's time to come up.
        return started(start)

    def _names(self, part: SubTopology) -> list[str]:
        return [part.full_name(topic, self._settings.application_id) for topic in part.topics]

    def _read(
        self,
        spark: SparkSession,
        part: SubTopology,
        engine: Engine,
        counts: dict[str, int],
        places: dict[tuple[str, int], int],
    ) -> DataFrame:
        first = _EARLIEST if self._settings.reset == "earliest" else _LATEST
        starts: dict[str, dict[str, int]] = {}
        for topic, name in zip(part.topics, self._names(part), strict=True):
            # What waits in an internal topic is never skipped.
            default = _EARLIEST if topic in part.internal_topics else first
            starts[name] = {str(index): places.get((name, index), default) for index in range(counts[name])}
        reader = spark.readStream.format(engine.format).options(
            **{f"kafka.{name}": value for name, value in self._settings.connection.items()}
        )
        reader = reader.option("subscribe", ",".join(starts)).option("startingOffsets", json.dumps(starts))
        reader = reader.option("kafka.isolation.level", "read_committed").option("includeHeaders", "true")
        at_once = self._settings.offsets_max or engine.offsets_max
        return reader.option("maxOffsetsPerTrigger", str(at_once)).schema(engine.schema).load()

    def _start_query(
        self, rows: DataFrame, part: SubTopology, engine: Engine, counts: dict[str, int], beside: Beside
    ) -> StreamingQuery:
        settings = self._settings
        checkpoint = self._checkpoint(part)
        direct = None
        if isinstance(engine, NativeEngine) and runs_directly(self._plan, part):
            direct = DirectEngine(self._plan, part, settings, engine)
        fixed = {name: counts[name] for name in self._names(part)} if part.logged or part.table_stores else {}
        layout = EngineLayout(
            engine,
            settings.connection,
            settings.compression,
            checkpoint,
            direct,
            partitions=fixed,
            begun=beside.purging.begun,
        )
        sink = Sink(
            layout,  # type: ignore[arg-type]  # it writes as one
            location=checkpoint,
            exactly_once=self._exactly_once,
            group=settings.application_id,
            transactional_id=self._transactional_id(part),
            transaction_timeout_ms=settings.transaction_timeout_ms,
            commit=beside.membership.commit,
        )
        writer = rows.writeStream.foreachBatch(sink).queryName(f"{settings.application_id}-{part.number}")
        writer = writer.option("checkpointLocation", checkpoint)
        if self._trigger not in (None, AVAILABLE_NOW):
            writer = writer.trigger(processingTime=self._trigger)
        elif settings.interval_ms is not None:
            writer = writer.trigger(processingTime=f"{settings.interval_ms} milliseconds")
        query = writer.start()
        threading.Thread(target=self._close_after, args=(query, sink), name=f"after-{query.id}", daemon=True).start()
        return query

    def _close_after(self, query: StreamingQuery, sink: Sink) -> None:
        """Let go of the sink's connections when the query has ended, and of all else when it was the last."""
        try:
            query.awaitTermination()
        except Exception:  # noqa: BLE001  # why it ended is for who waits for the query
            log.debug("query %s failed", query.id)
        try:
            sink.close()
        finally:
            if self._all_started and not self.is_active:
                self._let_go()

    # -- while it runs

    @property
    def is_active(self) -> bool:
        return any(map(_is_active, self.queries))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until all queries have ended; the first that fails is raised, after the others have been stopped."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            # Asked first: what has ended by now shows why below.
            is_active = self.is_active
            self._raise_failure()
            if not is_active:
                self._let_go()
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)

    def _raise_failure(self) -> None:
        for part, query in zip(self._parts, self.queries, strict=False):
            failure = query.exception()
            if failure is not None:
                self.stop()
                raise in_words_of_streams(failure, part, self._settings.application_id, self._checkpoint(part))

    def process_all_available(self) -> None:
        """A sub-topology may feed another, or itself through one: this goes around until nobody has done anything."""
        while True:
            before = [query.lastProgress and query.lastProgress["batchId"] for query in self.queries]
            for query in self.queries:
                query.processAllAvailable()
            self._raise_failure()
            if before == [query.lastProgress and query.lastProgress["batchId"] for query in self.queries]:
                return

    def stop(self) -> None:
        """Between two micro-batches if there is a gap; one that is cut off is done again by whoever goes on."""
        with ExitStack() as steps:  # taken backwards, and all of them whatever one raises
            steps.callback(self._let_go)
            for query in reversed(self.queries):
                steps.callback(_stop, query)


def _stop(query: StreamingQuery) -> None:
    deadline = time.monotonic() + _GAP_S
    while _is_active(query) and query.status["isTriggerActive"] and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    query.stop()


def _is_active(query: StreamingQuery) -> bool:
    """Where Spark's process is gone nobody can say, and the query is gone with it."""
    try:
        return query.isActive
    except Exception:  # noqa: BLE001
        return False


def _has_batches(spark: SparkSession, checkpoint: str) -> bool:
    """Whether a checkpoint says where its query goes on."""
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(checkpoint, "offsets")
    files = path.getFileSystem(context._jsc.hadoopConfiguration())
    # Others are left from a batch that was being written down.
    return bool(files.exists(path)) and any(file.getPath().getName().isdecimal() for file in files.listStatus(path))
