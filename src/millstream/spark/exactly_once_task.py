"""What a writer task does, in a Python worker: whole record batches into the driver's transaction.

All tasks of a batch write with one producer id and epoch. A partition accepts a producer's batches only in the order of
their sequence numbers, so each partition has exactly one task, which counts from zero in an epoch that nobody has used.
For the same reason a task must not run twice in one epoch: the second run would start at zero again, and the broker
would take its batches for copies of the first's and drop them, though the rows may have come in another order. So only
the first attempt writes. A later one, or a speculative copy, refuses; the driver then starts over in a new epoch.

A task is the same for all batches of a query, so that Spark has to be told of it once (prepared.py). What is different
from batch to batch, the epoch above all, comes with the job, as one of the properties that Spark gives to its tasks.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from millstream.arrow.constants import Constants
from millstream.arrow.encoding import Names
from millstream.arrow.routing import STICKY
from millstream.arrow.sources import split_by_topic
from millstream.arrow.writer import Writer
from millstream.client.produce import ALL_IN_SYNC, ProducerId
from millstream.client.transactions import Transaction
from millstream.spark.clients import client_for, let_go
from millstream.spark.worker_memory import keep_what_is_loaded

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext, TaskContext

    from millstream.records.codecs import Codec

RESULT: Final = "topic string, partition int, first_offset bigint, last_offset bigint, records bigint, stage int"
REFUSED: Final = "a writer task of a transaction runs once"
_RESULT_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("records", pa.int64()),
        ("stage", pa.int32()),
    ]
)


class TaskRefused(RuntimeError):
    """This is not the task's first attempt."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What is different from batch to batch.

    Without a transaction the tasks write at least once, wherever they like. With `own_partitions`, their number, rows
    have no keys and each task takes one that no other task takes. With `copy_waits_s` a second attempt waits before it
    refuses: it may be a speculative copy, and Spark ends those when the original is done.
    """

    number: int
    transaction: Transaction | None = None
    own_partitions: int = 0
    copy_waits_s: float = 0

    def give_to_jobs(self, context: SparkContext) -> None:
        """The jobs that this thread starts from now on are of this turn."""
        context.setLocalProperty(_PROPERTY, json.dumps(asdict(self)))

    @classmethod
    def of_task(cls, context: TaskContext) -> Turn:
        given = json.loads(context.getLocalProperty(_PROPERTY) or "null")
        if given is None:
            raise RuntimeError("a writer task was not told which batch it is for: is PYSPARK_PIN_THREAD=false?")
        if given["transaction"] is not None:
            producer = ProducerId(**given["transaction"].pop("producer"))
            given["transaction"] = Transaction(**given["transaction"], producer=producer)
        return cls(**given)


_PROPERTY: Final = "millstream.turn"


def running_task() -> TaskContext:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None, "runs in a task of Spark's"
    return context


@dataclass(frozen=True, slots=True)
class WriteTask:
    """Given to mapInArrow: takes a task's rows, writes them, and gives a row for each partition written to.

    Without `topic` the column of that name decides.
    """

    options: Mapping[str, str]
    topic: str | None
    columns: tuple[str, ...]
    codec: Codec

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = running_task()
        turn = Turn.of_task(context)
        _admit(context, turn)
        client = client_for(self.options, expected=turn.transaction is not None)
        try:
            writer = Writer(
                client,
                codec=self.codec,
                acks=ALL_IN_SYNC,
                partition_by=self._partition_by(turn, context.partitionId()),
                transaction=turn.transaction,
            )
            names = self._names()
            for batch in batches:
                for topic, rows in [(self.topic, batch)] if self.topic is not None else split_by_topic(batch):
                    writer.write(topic, rows, names)
            written = writer.finish()
        except BaseException:
            let_go(self.options)
            raise
        rows = [
            {"topic": topic, "partition": index, **result._asdict(), "stage": context.stageId()}
            for (topic, index), result in written.items()
        ]
        yield pa.RecordBatch.from_pylist(rows, schema=_RESULT_SCHEMA)
        keep_what_is_loaded()

    def _names(self) -> Names:
        present = {name: name if name in self.columns else None for name in ("key", "value", "headers", "timestamp")}
        return Names(**present)

    def _partition_by(self, turn: Turn, task: int) -> Routing:
        if "partition" in self.columns:
            return "partition"
        if turn.own_partitions:
            return _OwnPartition((task + turn.number) % turn.own_partitions)
        return STICKY


def _admit(context: TaskContext, turn: Turn) -> None:
    """Whether the task may write."""
    attempt = context.attemptNumber()
    if turn.transaction is not None and attempt > 0:
        time.sleep(turn.copy_waits_s)
        raise TaskRefused(f"{REFUSED}, and this is attempt {attempt + 1}")


class _OwnPartition:
    """All rows of a task to one partition; which one changes from batch to batch."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._constants = Constants()

    def __call__(self, batch: pa.RecordBatch, _partitions: int) -> pa.Array:
        # The driver's number of partitions counts: a worker that has an older one would collide with its neighbour.
        return self._constants.int32(self._index, batch.num_rows)


Routing = str | _OwnPartition
