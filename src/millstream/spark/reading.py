"""What a reading task does, in an executor's Python: one range of one partition as Arrow batches.

The client's loop fetches while this thread decodes and Spark takes what was decoded. Between plan and task a topic can
lose records, or be replaced by another of the same name; the topic's id and the broker's answers tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millstream.arrow.decoding import Decoder
from millstream.client.errors import Refusal, partition_subject
from millstream.client.offsets import EARLIEST, LATEST, list_offsets
from millstream.client.tail import Tail
from millstream.protocol.errors import ErrorCode
from millstream.spark.clients import client_for, let_go
from millstream.spark.loss import recreated, report_loss
from millstream.spark.schema import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from millstream.client.client import Client
    from millstream.client.sync import SyncClient
    from millstream.client.tail import Arrived
    from millstream.spark.options import ReadOptions
    from millstream.spark.ranges import Range

_POLL_MS: Final = 500


def read_range(part: Range, schema: pa.Schema, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """The range's records, in order."""
    client = client_for(options.connection, expected=True)
    try:
        if not _is_same_topic(client, part, options):
            return
        start: int | None = part.start
        while start is not None:
            reader = _Reader(client, part._replace(start=start), schema, options)
            try:
                yield from reader.batches()
                start = None
            except Refusal as refusal:
                if refusal.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                    raise
                start = _next_start(client, part, reader.position, options)
            finally:
                reader.close()
        _is_same_topic(client, part, options)
    except GeneratorExit:
        # Spark has seen enough (a limit), and nothing is wrong with the client.
        raise
    except BaseException:
        let_go(options.connection)
        raise


class _Reader:
    """One attempt to read a range."""

    def __init__(self, client: SyncClient, part: Range, schema: pa.Schema, options: ReadOptions) -> None:
        self.position = part.start
        self._client = client
        self._part = part
        self._options = options
        self._decoder = Decoder(schema, read_committed=options.read_committed, check_crcs=options.check_crcs)
        self._spark_schema = spark_schema(schema)
        self._tail = client.run(_open, part, options)

    def batches(self) -> Iterator[pa.RecordBatch]:
        pending = self._client.start(_next, self._tail)
        try:
            idle_ms = 0
            while True:
                arrived = self._client.wait(pending)
                # Only asked while no poll is under way: that would change it.
                more = bool(self._tail.positions)
                if more:
                    pending = self._client.start(_next, self._tail)
                for fetched, start, after in arrived:
                    for batch, position in self._decoder.decode(fetched, start, self._part.end):
                        self.position = position
                        yield self._as_spark_wants(batch)
                    self.position = after
                idle_ms = 0 if arrived else idle_ms + _POLL_MS
                if not more or self._is_hopeless(idle_ms):
                    return
        finally:
            pending.cancel()

    def _as_spark_wants(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(batch.columns, self._spark_schema, strict=True)
        ]
        return batch.from_arrays(columns, schema=self._spark_schema)

    def _is_hopeless(self, idle_ms: int) -> bool:
        if idle_ms < self._options.poll_timeout_ms:
            return False
        where = partition_subject(self._part.topic, self._part.partition)
        report_loss(
            f"{where} was planned to be read up to offset {self._part.end}, but nothing came after "
            f"{self.position} for {idle_ms} ms (kafkaConsumer.pollTimeoutMs)",
            fail=self._options.fail_on_data_loss,
            instead="the rest is left out",
        )
        return True

    def close(self) -> None:
        self._client.run(_close, self._tail)


def _is_same_topic(client: SyncClient, part: Range, options: ReadOptions) -> bool:
    """Whether the topic is the one that was planned for; asked before and, as far as it is known, after."""
    found = client.run(_id_of, part)
    if found == part.topic_id:
        return True
    report_loss(
        recreated(part.topic, part.topic_id, found),
        fail=options.fail_on_data_loss,
        instead="what was planned to be read of it is left out",
    )
    return False


async def _id_of(client: Client, part: Range) -> str:
    """The id of the topic of this name. What is known of it may be old, the plan is younger: it says what to expect."""

    async def attempt() -> str:
        topic = await client.metadata.topic(part.topic)
        if str(topic.id) == part.topic_id:
            # A partition that is not known yet is asked for again.
            topic.partition(part.partition)
        return str(topic.id)

    found = await client.retrying(attempt, topic=part.topic)
    if found != part.topic_id:
        client.metadata.forget(part.topic)
        found = await client.retrying(attempt, topic=part.topic)
    return found


def _next_start(client: SyncClient, part: Range, position: int, options: ReadOptions) -> int | None:
    """The broker says that it does not have `position`: where to go on, if that is wanted and possible."""
    place = (part.topic, part.partition)
    earliest = client.run(list_offsets, {place: EARLIEST})[place].offset
    latest = client.run(list_offsets, {place: LATEST}, read_committed=options.read_committed)[place].offset
    where = partition_subject(*place)
    what = f"{where} was planned to be read from offset {position} to {part.end}, but it holds {earliest} to {latest}"
    start = max(position, earliest) if earliest < part.end and position <= latest else None
    report_loss(
        what,
        fail=options.fail_if_expired if position < earliest else options.fail_on_data_loss,
        instead="all of it is left out" if start is None else f"it goes on at {start}",
    )
    return start


async def _open(client: Client, part: Range, options: ReadOptions) -> Tail:
    place = (part.topic, part.partition)
    return Tail(
        client,
        {place: part.start},
        ends={place: part.end},
        max_wait_ms=_POLL_MS,
        max_bytes=options.fetch_bytes,
        partition_bytes_max=options.fetch_bytes,
        read_committed=options.read_committed,
    )


async def _next(_: Client, tail: Tail) -> list[Arrived]:
    return await tail.next(_POLL_MS)


async def _close(_: Client, tail: Tail) -> None:
    await tail.close()
