"""Topics to Arrow: all of a range as a table, or batch by batch.

The client's loop fetches while the caller's thread decodes: when an answer is taken, the next request is already on its
way. So at most two answers of each leader are in memory, whatever the size of the topic.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Self

import pyarrow as pa

from millstream.arrow.decoding import Decoder
from millstream.arrow.positions import find_offsets, find_partitions
from millstream.arrow.schema import schema_of
from millstream.client.grouping import by_topic
from millstream.client.options import options_from
from millstream.client.sync import SyncClient
from millstream.client.tail import Tail

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from concurrent.futures import Future

    from millstream.arrow.positions import Partitions, Topics, Where
    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.options import Bootstrap
    from millstream.client.tail import Arrived

Isolation = Literal["read_committed", "read_uncommitted"]

FETCH_BYTES: Final = 16 * 1024 * 1024
PARTITION_BYTES: Final = 2 * 1024 * 1024
_POLL_MS: Final = 500
_NO_END: Final = (1 << 63) - 1


def read(
    bootstrap: Bootstrap,
    topic: Topics,
    *,
    start: Where = "earliest",
    end: Where = "latest",
    partitions: Partitions | None = None,
    columns: str | Iterable[str] | None = None,
    isolation: Isolation = "read_committed",
) -> pa.Table:
    """The records from `start` up to `end` as a table.

    `bootstrap` are servers, in one text or a list, or a mapping of options under librdkafka's names; `topic` is a name,
    several, or a pattern. An end that lies beyond what the partition holds now is cut, as slices are; `stream` would
    wait for it.
    """
    with stream(
        bootstrap,
        topic,
        start=start,
        end=end,
        partitions=partitions,
        columns=columns,
        isolation=isolation,
        only_present=True,
    ) as batches:
        return pa.Table.from_batches(list(batches), schema=batches.schema)


def stream(
    bootstrap: Bootstrap,
    topic: Topics,
    *,
    start: Where = "earliest",
    end: Where | None = None,
    partitions: Partitions | None = None,
    columns: str | Iterable[str] | None = None,
    isolation: Isolation = "read_committed",
    idle_ms: int | None = None,
    only_present: bool = False,
    fetch_bytes: int = FETCH_BYTES,
    partition_bytes: int = PARTITION_BYTES,
) -> Stream:
    """Record batches as they come: up to `end`, or for ever; with `idle_ms` until nothing came for so long.

    A stream without an end takes up new partitions, and new topics that a pattern matches, from their beginning; it
    looks for them as often as `metadata.max.age.ms` says.
    """
    schema = schema_of(columns)
    if isolation not in ("read_committed", "read_uncommitted"):
        raise ValueError(f"isolation is 'read_committed' or 'read_uncommitted', not {isolation!r}")
    client = SyncClient(options_from(bootstrap))
    committed = isolation == "read_committed"
    try:
        plan = client.run(_plan, topic, partitions, start, end, read_committed=committed, only_present=only_present)
        tail = client.run(
            _open, plan, read_committed=committed, fetch_bytes=fetch_bytes, partition_bytes=partition_bytes
        )
    except BaseException:
        client.close()
        raise
    # Only who reads everything for ever wants to hear of partitions that did not exist yet.
    watched = topic if end is None and partitions is None else None
    return Stream(client, tail, plan, Decoder(schema, read_committed=committed), idle_ms, watched)


class Plan(NamedTuple):
    """From where to where each partition is read."""

    starts: dict[TopicPartition, int]
    ends: dict[TopicPartition, int]


class Stream:
    """An iterator of record batches. `offsets` is where a later stream goes on: after all that was handed out."""

    def __init__(
        self,
        client: SyncClient,
        tail: Tail,
        plan: Plan,
        decoder: Decoder,
        idle_ms: int | None,
        watched: Topics | None,
    ) -> None:
        self.schema = decoder.schema
        self.offsets = dict(plan.starts)
        self._client = client
        self._tail = tail
        self._ends = plan.ends
        self._decoder = decoder
        self._idle_ms = idle_ms
        self._watched = watched
        self._looked_ms = client.client.ports.clock.monotonic_ms()
        self._pending: Future[list[Arrived]] | None = None
        self._batches = self._read()
        self._closed = False

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            return next(self._batches)
        except BaseException:
            # At its end too: a loop without `with` leaves no connection behind.
            self.close()
            raise

    def close(self) -> None:
        """Let go of the connections; the iteration is over."""
        if self._closed:
            return
        self._closed = True
        self._batches.close()
        if self._pending is not None:
            self._pending.cancel()
        self._client.run(_close, self._tail)
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self) -> Generator[pa.RecordBatch]:
        while arrived := self._arrived():
            self._pending = self._client.start(_next, self._tail, self._watched is not None)
            for fetched, start, after in arrived:
                place = (fetched.topic, fetched.partition)
                end = self._ends.get(place, _NO_END)
                for batch, position in self._decoder.decode(fetched, start, end):
                    self.offsets[place] = position
                    yield batch
                self.offsets[place] = min(after, end)

    def _arrived(self) -> list[Arrived]:
        """What has arrived; nothing when there is no more to come."""
        idle_ms = 0
        while self._tail.positions or self._pending is not None or self._watched is not None:
            self._look_for_new()
            pending = self._pending or self._client.start(_next, self._tail, self._watched is not None)
            self._pending = None
            if arrived := self._client.wait(pending):
                return arrived
            idle_ms += _POLL_MS
            if self._idle_ms is not None and idle_ms >= self._idle_ms:
                break
        return []

    def _look_for_new(self) -> None:
        now_ms = self._client.client.ports.clock.monotonic_ms()
        if self._watched is None or now_ms - self._looked_ms < self._client.client.options.metadata_age_ms_max:
            return
        self._looked_ms = now_ms
        self.offsets.update(self._client.run(_follow_new, self._tail, self._watched, list(self.offsets)))


async def _follow_new(
    client: Client, tail: Tail, topics: Topics, known: list[TopicPartition]
) -> dict[TopicPartition, int]:
    for topic in by_topic(known):
        client.metadata.forget(topic)
    new = [place for place in await find_partitions(client, topics, None) if place not in known]
    starts = await find_offsets(client, new, "earliest", otherwise="earliest", read_committed=False)
    tail.add(starts)
    return starts


async def _plan(
    client: Client,
    topics: Topics,
    partitions: Partitions | None,
    start: Where,
    end: Where | None,
    *,
    read_committed: bool,
    only_present: bool,
) -> Plan:
    places = await find_partitions(client, topics, partitions)
    starts = await find_offsets(client, places, start, otherwise="earliest", read_committed=read_committed)
    if end is None:
        return Plan(starts, {})
    ends = await find_offsets(client, places, end, otherwise="latest", read_committed=read_committed)
    if only_present:
        latest = await find_offsets(client, places, "latest", otherwise="latest", read_committed=read_committed)
        ends = {place: min(offset, latest[place]) for place, offset in ends.items()}
    return Plan(starts, ends)


async def _open(client: Client, plan: Plan, *, read_committed: bool, fetch_bytes: int, partition_bytes: int) -> Tail:
    return Tail(
        client,
        plan.starts,
        ends=plan.ends,
        max_wait_ms=_POLL_MS,
        max_bytes=fetch_bytes,
        partition_bytes_max=partition_bytes,
        read_committed=read_committed,
    )


async def _next(_: Client, tail: Tail, watched: bool) -> list[Arrived]:  # noqa: FBT001  # called by place
    if watched and not tail.positions:
        # No topic matches yet.
        await asyncio.sleep(_POLL_MS / 1000)
    return await tail.next(_POLL_MS)


async def _close(_: Client, tail: Tail) -> None:
    await tail.close()
