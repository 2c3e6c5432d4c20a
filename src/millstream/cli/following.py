"""Reading partitions for a command: where to start, when to stop, batches as they come."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from millstream.cli.declare import UsageError
from millstream.cli.output import reader_is_gone
from millstream.client.offsets import EARLIEST, LATEST, list_offsets
from millstream.client.reading import Batch, batches_from
from millstream.client.tail import Arrived, Tail

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.metadata import Topic
    from millstream.client.sync import SyncClient

# How often a wait for records looks up, so that Ctrl-C and deadlines are noticed.
WAIT_MS = 1_000


class Part(NamedTuple):
    """A batch of records and where it is from."""

    topic: str
    partition: int
    batch: Batch


def partitions_of(client: SyncClient, topic: str, wanted: Sequence[int]) -> list[TopicPartition]:
    """The wanted partitions of a topic, or all."""
    found = client.run(_topic, topic)
    for index in wanted:
        found.partition(index)
    return [(topic, index) for index in (wanted or range(len(found.partitions)))]


async def _topic(client: Client, name: str) -> Topic:
    return await client.metadata.topic(name)


def starting_offsets(
    client: SyncClient,
    places: Sequence[TopicPartition],
    start: str,
    *,
    since_ms: int | None = None,
    outside: str | None = None,
) -> dict[TopicPartition, int]:
    """`beginning`, `end`, an offset, or -N for the last N of each partition; `since_ms` wins over it.

    An offset that the partition does not have is refused, unless `outside` says where to start instead.
    """
    starts = client.run(list_offsets, dict.fromkeys(places, EARLIEST))
    ends = client.run(list_offsets, dict.fromkeys(places, LATEST))
    if since_ms is not None:
        found = client.run(list_offsets, dict.fromkeys(places, since_ms))
        return {place: at.offset if at.offset >= 0 else ends[place].offset for place, at in found.items()}
    if start in ("beginning", "earliest"):
        return {place: at.offset for place, at in starts.items()}
    if start in ("end", "latest"):
        return {place: at.offset for place, at in ends.items()}
    try:
        number = int(start)
    except ValueError:
        raise UsageError(f"an offset is a number, beginning or end, not {start!r}") from None
    if number < 0:
        return {place: max(starts[place].offset, ends[place].offset + number) for place in places}
    for topic, index in places:
        first, last = starts[topic, index].offset, ends[topic, index].offset
        if not first <= number <= last:
            if outside is not None:
                return starting_offsets(client, places, outside)
            raise UsageError(f"topic {topic!r} partition {index} has the offsets {first} to {last}, not {number}")
    return dict.fromkeys(places, number)


def follow(
    client: SyncClient,
    offsets: Mapping[TopicPartition, int],
    *,
    read_committed: bool = False,
    until_end: bool = False,
    idle_ms_max: int | None = None,
) -> Generator[Part, None, None]:
    """Batches as they come; ends at today's end, or when nothing came for a while, or never."""
    ends: dict[TopicPartition, int] = {}
    if until_end:
        found = client.run(list_offsets, dict.fromkeys(offsets, LATEST), read_committed=read_committed)
        ends = {place: at.offset for place, at in found.items()}
    tail = client.run(_open, offsets, read_committed)
    for place, end in ends.items():
        if tail.positions[place] >= end:
            tail.stop_at(place)
    idle_ms = 0
    wait_ms = WAIT_MS if idle_ms_max is None else min(WAIT_MS, idle_ms_max)
    # The next poll runs while the last one's records are shown.
    coming = client.start(_next, tail, wait_ms)
    try:
        while tail.positions or not coming.done():
            arrived = client.wait(coming)
            for answer in arrived:
                place = (answer.fetched.topic, answer.fetched.partition)
                if place in ends and tail.positions.get(place, 0) >= ends[place]:
                    tail.stop_at(place)
            coming = client.start(_next, tail, wait_ms)
            idle_ms = 0 if arrived else idle_ms + wait_ms
            if not arrived and reader_is_gone():
                raise BrokenPipeError
            for answer in arrived:
                yield from _parts(answer, read_committed=read_committed)
            if idle_ms_max is not None and idle_ms >= idle_ms_max:
                return
    finally:
        coming.cancel()
        client.run(_close, tail)


def _parts(answer: Arrived, *, read_committed: bool) -> Iterator[Part]:
    fetched = answer.fetched
    for batch in batches_from(fetched, answer.offset, read_committed=read_committed):
        yield Part(fetched.topic, fetched.partition, batch)


def limited(parts: Generator[Part, None, None], limit: int | None) -> Generator[Part]:
    """The first `limit` records; closes what it reads from when it is closed."""
    left = limit
    with closing(parts):
        for part in parts:
            if left is None:
                yield part
                continue
            records = part.batch.records[:left]
            yield part._replace(batch=part.batch._replace(records=records))
            left -= len(records)
            if left <= 0:
                return


async def _open(client: Client, offsets: Mapping[TopicPartition, int], read_committed: bool) -> Tail:  # noqa: FBT001
    return Tail(client, offsets, read_committed=read_committed, reset=EARLIEST)


async def _next(_: Client, tail: Tail, timeout_ms: int) -> list[Arrived]:
    return await tail.next(timeout_ms)


async def _close(_: Client, tail: Tail) -> None:
    await tail.close()
