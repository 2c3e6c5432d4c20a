"""The driver's side: one transaction for each micro-batch, in `foreachBatch`.

1. The driver holds the producer; its transactional id is the query's id, or one that streams give it, by which they
   find each other without a checkpoint. Starting it fences whoever wrote before: an older driver, a task that was given
   up and still runs.
2. All writer tasks of the batch write with that producer id and epoch (exactly_once_task.py).
3. The offsets where the batch ends go to a consumer group, in the same transaction, each with a note: query, batch,
   and a digest of the plan. Then the transaction is committed, and Spark marks the batch as done. The group is the
   query's own, named by its id, so that nobody writes over the notes; where people want to see the lag under another
   name, the offsets go there as well. Queries that read different topics may share a group instead (streams do).
4. A driver that starts, or that lost track, first starts the producer anew, which ends what was open, and then reads
   the notes: is this very batch among them, it was committed, and is skipped.

An epoch is used for one try of one batch. Where the cluster has transaction.version 2 the commit's answer brings the
next epoch, otherwise it is asked for. So whatever failed, the next try starts from a clean slate, and anything that is
still under way from the one before is refused by the brokers.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from millstream.client.errors import ClientError, Refusal
from millstream.client.groups import Committed, commit_offsets, committed_offsets
from millstream.client.offsets import LATEST, list_offsets
from millstream.client.options import options_from
from millstream.client.produce import init_producer_id
from millstream.client.transactions import (
    Transaction,
    adds_partitions_implicitly,
    commit_offsets_in,
    end_transaction,
)
from millstream.protocol.errors import ErrorCode
from millstream.spark.clients import client_for, let_go
from millstream.spark.exactly_once_checkpoint import Checkpoint
from millstream.spark.exactly_once_sources import OwnSources, SourceUnknown
from millstream.spark.exactly_once_task import REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, Row

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.options import Bootstrap
    from millstream.client.sync import SyncClient
    from millstream.spark.exactly_once_checkpoint import BatchEnd
    from millstream.spark.exactly_once_routing import Layout

log = logging.getLogger("millstream.spark")

TRIES: Final = 4
TRANSACTION_TIMEOUT_MS: Final = 5 * 60_000
# Another producer with this id has started, or the coordinator has given this one up.
_FENCED: Final = (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
# What Spark says of tasks that were lost or came at a bad moment, rather than wrong.
_LOST: Final = (
    REFUSED,
    "Python worker exited unexpectedly",
    "Python worker failed to connect back",
    "ExecutorLost",
    # A broker that was away for too long: the driver tries again where it finds the same itself.
    "millstream.client.errors.TimedOut",
    "millstream.client.errors.Unreachable",
    "millstream.client.errors.ConnectionLost",
    # A topic that has grown, which the worker did not know: it will ask again.
    ", but there are",
    # What a query had in Spark's memory went with an executor (streams): it is read back.
    "Checkpoint block",
)


class Fenced(RuntimeError):
    """Another query writes with this checkpoint's id, or the transaction took longer than it may."""


class CheckpointMismatch(RuntimeError):
    """What the topic's cluster remembers of this query does not fit the checkpoint: going on would lose or double."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is stored with each offset: which plan of which batch of which query this is."""

    query_id: str
    batch_id: int
    digest: str

    def __str__(self) -> str:
        return f"{self.query_id} {self.batch_id} {self.digest}"

    @classmethod
    def parse(cls, text: str) -> Note | None:
        """None for a note that somebody else wrote."""
        parts = text.split(" ")
        return cls(parts[0], int(parts[1]), parts[2]) if len(parts) == 3 and parts[1].isdecimal() else None


class Sink:
    """Given to foreachBatch."""

    def __init__(
        self,
        layout: Layout,
        *,
        location: str,
        exactly_once: bool,
        group: str | None = None,
        lag_group: str | None = None,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
        spark_keeps_state: bool = False,
        commit: Callable[[Mapping[TopicPartition, Committed]], None] | None = None,
    ) -> None:
        """`commit` stores the group's offsets where there are no transactions: a group with members takes them from
        these alone."""
        self._layout = layout
        self._commit_as_member = commit
        self._spark_keeps_state = spark_keeps_state
        self._location = location
        self._exactly_once = exactly_once
        self._given_group = group
        self._lag_group = lag_group
        self._transactional_id = transactional_id
        self._timeout_ms = transaction_timeout_ms
        self._checkpoint: Checkpoint | None = None
        self._query_id = ""
        self._options = dict(layout.options)
        self._producer: Transaction | None = None
        self._lost_track = True
        self._sources = OwnSources()

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        if self._checkpoint is None:
            self._checkpoint = Checkpoint(batch.sparkSession, self._location)
            self._query_id = self._checkpoint.query_id()
            # A client of this query's own: one that fails is closed, and must not take other queries along.
            self._options = {"client.id": f"millstream-spark-{self._query_id}", **self._options}
        end = self._checkpoint.end_of(batch_id)
        for tried in range(1, TRIES + 1):
            try:
                return self._write(batch, batch_id, end, reached_before=tried > 1)
            except Exception as error:
                self.close()
                self._producer, self._lost_track = None, True
                self._sources.forget()
                if is_fenced(error):
                    raise Fenced(
                        f"the query {self._query_id} was fenced in batch {batch_id}: another query runs with the "
                        f"checkpoint {self._location}, or the transaction took longer than {self._timeout_ms} ms"
                    ) from error
                if tried == TRIES or not is_passing(error):
                    raise
                log.warning("batch %d of query %s is tried again: %s", batch_id, self._query_id, reason_of(error))
        return None

    def close(self) -> None:
        """Let go of the connections; whoever needs them again gets new ones."""
        let_go(self._options)

    @property
    def group(self) -> str:
        """Where the notes are."""
        return self._given_group or self._query_id

    def _write(self, batch: DataFrame, batch_id: int, end: BatchEnd, *, reached_before: bool) -> None:
        client = client_for(self._options, expected=reached_before)
        note = Note(self._query_id, batch_id, end.digest)
        offsets = self._offsets(client, end, note)
        if not self._exactly_once:
            self._layout.write(batch, client, None, batch_id)
            return self._commit_outside(client, offsets) if offsets else None
        transaction = self._begin(client)
        if self._lost_track:
            expected = bool(offsets) or self._layout.topic is not None
            if self._is_committed(self._notes(client, offsets), note, expected=expected):
                if self._spark_keeps_state:
                    # Its results are out, but what Spark counts and remembers is so only when the batch was computed.
                    batch.write.format("noop").mode("overwrite").save()
                return None
            self._lost_track = False
        written = self._layout.write(batch, client, transaction, batch_id)
        if offsets and self._lag_group is not None:
            client.run(commit_offsets_in, transaction, self._lag_group, offsets)
        offsets = offsets or self._under_an_output_partition(client, note, written)
        if offsets:
            client.run(commit_offsets_in, transaction, self.group, offsets)
        if offsets or written:
            self._commit(client, transaction)
        return None

    def _commit_outside(self, client: SyncClient, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Where there are no transactions."""
        if self._lag_group is not None:
            client.run(commit_offsets, self._lag_group, offsets)
        if self._commit_as_member is not None:
            self._commit_as_member(offsets)
        else:
            client.run(commit_offsets, self.group, offsets)

    def _begin(self, client: SyncClient) -> Transaction:
        """A producer at an epoch that was never used; it is taken, so that no second try can use it."""
        producer, self._producer = self._producer, None
        return producer or client.run(begin, self._transactional_id or self._query_id, self._timeout_ms)

    def _commit(self, client: SyncClient, transaction: Transaction) -> None:
        following = client.run(end_transaction, transaction, commit=True)
        if following != transaction.producer:
            self._producer = replace(transaction, producer=following)

    def _offsets(self, client: SyncClient, end: BatchEnd, note: Note) -> dict[TopicPartition, Committed]:
        """Where the batch ends in those sources that are topics of the cluster that is written to."""
        topics = end.topics()
        ours = self._sources.among(client, topics)
        if topics and not ours and self._given_group is not None:
            # An output partition, where the note would go instead, may be what another query of the group reads.
            raise SourceUnknown(f"the cluster does not know {', '.join(topic.name for topic in topics)}")
        return {place: Committed(offset, str(note)) for topic in ours for place, offset in topic.ends.items()}

    def _notes(self, client: SyncClient, offsets: Mapping[TopicPartition, Committed]) -> list[Note]:
        """The notes of this query.

        In its own group they may be elsewhere than the next ones will be: a topic with a source's name may have come or
        gone, so everything is asked for. A first commit that is under way would be missing in that answer (Apache Kafka
        before 4.0 may still be at it when the producer has started), and is waited for where it is asked for by name.
        In a shared group only what this query reads is asked for: another one may have left a transaction open.
        """
        if self._given_group is not None:
            found = client.run(committed_offsets, self.group, list(offsets) or None)
        else:
            output = [] if self._layout.topic is None else [(self._layout.topic, 0)]
            found = client.run(committed_offsets, self.group, [*offsets, *output])
            found |= client.run(committed_offsets, self.group, None)
        notes = [Note.parse(each.metadata) for each in found.values()]
        return [note for note in notes if note is not None and note.query_id == self._query_id]

    def _is_committed(self, own: list[Note], note: Note, *, expected: bool) -> bool:
        """Whether the query's notes say that this batch was committed before."""
        if not own:
            if note.batch_id > 0 and expected:
                raise CheckpointMismatch(
                    f"the checkpoint {self._location} is at batch {note.batch_id}, but group {self.group!r} has no "
                    "offsets of this query: they expired or were deleted, or it wrote to another cluster; whether this "
                    "batch was written cannot be known"
                )
            return False
        last = max(own, key=lambda each: each.batch_id)
        if last.batch_id > note.batch_id or (last.batch_id == note.batch_id and last.digest != note.digest):
            raise CheckpointMismatch(
                f"batch {last.batch_id} of this query was committed to group {self.group!r}, but the checkpoint "
                f"{self._location} has another plan from batch {note.batch_id} on: it is a copy, or it lost its end"
            )
        return last.batch_id == note.batch_id

    def _under_an_output_partition(
        self, client: SyncClient, note: Note, written: list[Row]
    ) -> dict[TopicPartition, Committed]:
        """No source is a topic of this cluster: the note goes to an output partition, with where that ends now."""
        topic = self._layout.topic or (written[0]["topic"] if written else None)
        if topic is None:
            return {}  # nothing was written, and nothing would be if it were done again
        place = (topic, 0)
        end = client.run(list_offsets, {place: LATEST})[place].offset
        return {place: Committed(end, str(note))}


async def begin(client: Client, transactional_id: str, timeout_ms: int) -> Transaction:
    """A producer at a new epoch; what was open under its id is aborted, or brought to its end if it was committing."""
    producer = await init_producer_id(client, transactional_id=transactional_id, transaction_timeout_ms=timeout_ms)
    return Transaction(transactional_id, producer, await adds_partitions_implicitly(client))


def is_fenced(error: Exception) -> bool:
    """Whether the brokers refused us for good; what a task raised comes as text."""
    if isinstance(error, Refusal):
        return error.code in _FENCED
    return any(f"({code.name})" in str(error) for code in _FENCED)


def is_passing(error: Exception) -> bool:
    """Whether another try may go better: a task was lost or refused to run twice, or a broker was away for too long."""
    if isinstance(error, ClientError):
        return error.retriable
    if isinstance(error, SourceUnknown):
        return True
    return any(sign in str(error) for sign in _LOST)


def reason_of(error: Exception) -> str:
    """One line of what may be a stack trace of two languages."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    telling = [line for line in lines if any(sign in line for sign in _LOST)]
    return (telling or lines)[0].strip()


def options_of(servers: Bootstrap) -> dict[str, str]:
    """The client's options from a list of servers, or from a mapping whose names may begin with `kafka.`."""
    return {name.removeprefix("kafka."): value for name, value in options_from(servers).items()}
