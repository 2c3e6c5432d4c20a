"""Between Spark's micro-batch and the transaction that writes it: the engine turns records read into those to write.

The exactly-once sink of millstream.spark does the rest: one transaction for each micro-batch, the offsets of the group
in it, another try where a task was lost. To it this is a layout, which is asked to write a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from millstream.records.codecs import Codec
from millstream.spark.exactly_once_checkpoint import Checkpoint, offsets_in
from millstream.spark.exactly_once_routing import Layout
from millstream.spark.offsets import FROM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, Row

    from millstream.client.grouping import TopicPartition
    from millstream.client.sync import SyncClient
    from millstream.client.transactions import Transaction

COLUMNS = ("key", "value", "headers", "timestamp", "partition", "topic")


@dataclass(frozen=True)
class Span:
    """Where a micro-batch starts and ends in the partitions of its topics."""

    starts: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]

    def sizes(self, topic: str) -> list[int]:
        """About how many records it has of each partition of a topic."""
        return [end - self.starts.get(place, 0) for place, end in self.ends.items() if place[0] == topic]


class Engine(Protocol):
    """What runs a sub-topology. It says which columns of the records it needs, and how many records it wants at once
    unless the settings say so."""

    columns: tuple[str, ...]
    offsets_max: int

    def output(self, batch: DataFrame, client: SyncClient, batch_id: int, span: Span) -> DataFrame:
        """The records to write, as rows with COLUMNS. Asked again for a batch that is tried again."""

    def written(self, rows: list[Row]) -> None:
        """They were written, and will be committed unless the same batch comes again."""


class EngineLayout:
    """A layout of the sink's that lets an engine work first."""

    topic = None

    def __init__(self, engine: Engine, connection: Mapping[str, str], compression: str, checkpoint: str) -> None:
        self.options = dict(connection)
        self._engine = engine
        self._layout = Layout(self.options, None, COLUMNS, Codec[compression.upper()])
        self._location = checkpoint
        self._checkpoint: Checkpoint | None = None

    def write(self, batch: DataFrame, client: SyncClient, transaction: Transaction | None, batch_id: int) -> list[Row]:
        rows = self._engine.output(batch, client, batch_id, self._span(batch, batch_id))
        written = self._layout.write(rows, client, transaction, batch_id)
        self._engine.written(written)
        return written

    def _span(self, batch: DataFrame, batch_id: int) -> Span:
        """It starts where the one before ended, or where the query started."""
        if self._checkpoint is None:
            self._checkpoint = Checkpoint(batch.sparkSession, self._location)
        ends = self._checkpoint.end_of(batch_id).topic_offsets()
        if batch_id > 0:
            return Span(self._checkpoint.end_of(batch_id - 1).topic_offsets(), ends)
        starts = {
            place: offset for source in self._checkpoint.end_of(0).sources for place, offset in _begin(source).items()
        }
        return Span(starts, ends)


def _begin(source: str) -> dict[TopicPartition, int]:
    import json

    return offsets_in(json.dumps(json.loads(source).get(FROM, {})))
