"""Between Spark's micro-batch and the transaction that writes it: the engine turns records read into those to write.

The exactly-once sink of millstream.spark does the rest: one transaction for each micro-batch, the offsets of the group
in it, another try where a task was lost. To it this is a layout, which is asked to write a batch. Where there is a
DirectEngine it is asked first: a small micro-batch needs no job of Spark's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from millstream.records.codecs import Codec
from millstream.spark.exactly_once_checkpoint import Checkpoint
from millstream.spark.exactly_once_routing import Layout
from millstream.spark.offsets import Offsets
from millstream.streams.errors import TopologyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pyspark.sql import DataFrame, Row

    from millstream.client.grouping import TopicPartition
    from millstream.client.sync import SyncClient
    from millstream.client.transactions import Transaction
    from millstream.streams.lower.direct.engine import DirectEngine

COLUMNS = ("key", "value", "headers", "timestamp", "partition", "topic")
# A query has a session of its own, so this is for its batches alone. With a limit in bytes Spark asks every column for
# its size after every row that goes to Python, which took ten times as long as all the rest of writing; a limit in rows
# keeps the batches small instead.
_SETTINGS = {
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
}


@dataclass(frozen=True)
class Span:
    """Where a micro-batch starts and ends in the partitions of its topics."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    # Of the topics: one that was made again under its name is another.
    ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """About how many records it has: as many, or fewer."""
        return sum(end - self.starts.get(place, 0) for place, end in self.ends.items())

    def sizes(self, topic: str) -> list[int]:
        """About how many records it has of each partition of a topic."""
        return [end - self.starts.get(place, 0) for place, end in self.ends.items() if place[0] == topic]


class Engine(Protocol):
    """What runs a sub-topology. It says in which format and with which columns it wants the records, how many of them
    at once unless the settings say so, and the topic that all goes to, if there is one."""

    format: str
    schema: str
    only_topic: str | None
    offsets_max: int

    def output(self, batch: DataFrame, client: SyncClient, batch_id: int, span: Span) -> DataFrame:
        """The records to write, as rows with COLUMNS. Asked again for a batch that is tried again."""

    def written(self, rows: list[Row]) -> None:
        """They were written, and will be committed unless the same batch comes again."""


class EngineLayout:
    """A layout of the sink's that lets an engine work first."""

    topic = None

    def __init__(
        self,
        engine: Engine,
        connection: Mapping[str, str],
        compression: str,
        checkpoint: str,
        direct: DirectEngine | None = None,
        *,
        partitions: Mapping[str, int] | None = None,
        begun: Callable[[Mapping[TopicPartition, int]], None] | None = None,
    ) -> None:
        """`partitions` are those of topics that must not grow: a key's state stays where the key was. `begun` is told
        where each micro-batch starts."""
        self.options = dict(connection)
        self._engine = engine
        self._direct = direct
        # Where all rows go to one topic none has to say so.
        columns = COLUMNS if engine.only_topic is None else tuple(name for name in COLUMNS if name != "topic")
        self._layout = Layout(self.options, engine.only_topic, columns, Codec[compression.upper()])
        self._location = checkpoint
        self._partitions = dict(partitions or {})
        self._begun = begun
        self._checkpoint: Checkpoint | None = None

    def write(self, batch: DataFrame, client: SyncClient, transaction: Transaction | None, batch_id: int) -> list[Any]:
        span = self._span(batch, batch_id)
        if self._begun is not None:
            self._begun(span.starts)
        if self._direct is not None:
            directly = self._direct.write(batch.sparkSession, client, transaction, batch_id, span)
            if directly is not None:
                return directly
        rows = self._engine.output(batch, client, batch_id, span)
        if self._engine.only_topic is not None:
            rows = rows.drop("topic")
        written = self._layout.write(rows, client, transaction, batch_id)
        self._engine.written(written)
        return written

    def _span(self, batch: DataFrame, batch_id: int) -> Span:
        """It starts where the one before ended, or where the query started."""
        if self._checkpoint is None:
            self._checkpoint = Checkpoint(batch.sparkSession, self._location)
            for name, value in _SETTINGS.items():
                batch.sparkSession.conf.set(name, value)
        end = _offsets(self._checkpoint, batch_id)
        refuse_growth(end.places, self._partitions)
        begin = _offsets(self._checkpoint, batch_id - 1) if batch_id > 0 else end.begin
        return Span({} if begin is None else begin.places, end.places, end.ids)


def refuse_growth(places: Iterable[TopicPartition], partitions: Mapping[str, int]) -> None:
    """Keys that move to new partitions would not find their state, nor what they are joined with."""
    for topic, index in places:
        if index >= partitions.get(topic, index + 1):
            raise TopologyError(
                f"topic {topic!r} had {partitions[topic]} partitions when the application started and has more now: "
                "its keys are no longer where their state is. Reset the application, or give it another id"
            )


def _offsets(checkpoint: Checkpoint, batch_id: int) -> Offsets:
    """The end of a micro-batch; a query has one source, which is ours."""
    (source,) = checkpoint.end_of(batch_id).sources
    return Offsets.from_json(json.loads(source))
