"""Following partitions: one poll under way per leader, and whatever has arrived is handed out.

If polls were waited for together, the slowest leader would hold up the others: one without new records answers only
after `max_wait_ms`. So each leader has its own poll, and a poll that ends is started again from where it came to.
Partitions whose leader moves are looked up anew; an offset that retention has overtaken goes on where `reset` says.
A partition with an end leaves when it was reached. One that gave something goes to the end of the queue, since a
broker fills its answer in the order asked, and only the first may exceed the limits for the sake of a large batch.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from millstream.client.errors import ClientError, CorruptBatch, Refusal
from millstream.client.fetch import MOVED, Fetched, ask_leader
from millstream.client.grouping import by_leader, by_topic
from millstream.client.offsets import list_offsets
from millstream.client.reading import next_offset
from millstream.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition


class Arrived(NamedTuple):
    """What one partition answered to a poll from `offset` on; `after` is where to read on."""

    fetched: Fetched
    offset: int
    after: int


class Tail:
    """Reads on from these offsets, for ever."""

    def __init__(
        self,
        client: Client,
        offsets: Mapping[TopicPartition, int],
        *,
        max_wait_ms: int = 500,
        max_bytes: int = 16_777_216,
        partition_bytes_max: int = 1_048_576,
        read_committed: bool = False,
        reset: int | None = None,
        ends: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        self._ends = dict(ends or {})
        self.positions = {place: offset for place, offset in offsets.items() if not self._reached(place, offset)}
        self._client = client
        self._max_wait_ms = max_wait_ms
        self._max_bytes = max_bytes
        self._partition_bytes_max = partition_bytes_max
        self._read_committed = read_committed
        self._reset = reset
        self._polls: dict[int, asyncio.Task[list[Arrived]]] = {}
        self._polled: dict[int, list[TopicPartition]] = {}

    def add(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Follow more partitions from now on."""
        self.positions.update(offsets)

    def stop_at(self, place: TopicPartition) -> None:
        """This partition has been read far enough."""
        self.positions.pop(place, None)

    async def next(self, timeout_ms: int) -> list[Arrived]:
        """What has arrived, as soon as anything has; empty when the time is up."""
        deadline_s = asyncio.get_running_loop().time() + timeout_ms / 1000
        while self.positions:
            await self._client.retrying(self._start_polls)
            left_s = deadline_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                break
            await asyncio.wait(self._polls.values(), timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
            arrived = await self._collect()
            if arrived:
                return arrived
        return []

    async def close(self) -> None:
        polls = list(self._polls.values())
        for poll in polls:
            poll.cancel()
        await asyncio.gather(*polls, return_exceptions=True)
        self._polls.clear()

    async def _start_polls(self) -> None:
        busy = {place for places in self._polled.values() for place in places}
        free = [place for place in self.positions if place not in busy]
        for node, places in (await by_leader(self._client, free)).items():
            # A leader that is being polled takes new partitions when that poll has ended.
            if node not in self._polls:
                self._polls[node] = asyncio.create_task(self._poll(node, places))
                self._polled[node] = places

    async def _poll(self, node: int, places: list[TopicPartition]) -> list[Arrived]:
        offsets = {place: self.positions[place] for place in places}
        fetched = await ask_leader(
            self._client,
            node,
            offsets,
            max_wait_ms=self._max_wait_ms,
            min_bytes=1,
            max_bytes=self._max_bytes,
            partition_bytes_max=self._partition_bytes_max,
            read_committed=self._read_committed,
        )
        answers = []
        for answer in fetched:
            offset = offsets[answer.topic, answer.partition]
            answers.append(Arrived(answer, offset, next_offset(answer, offset)))
        return answers

    async def _collect(self) -> list[Arrived]:
        arrived: list[Arrived] = []
        for node in [node for node, poll in self._polls.items() if poll.done()]:
            poll, places = self._polls.pop(node), self._polled.pop(node)
            try:
                answers = poll.result()
            except ClientError as error:
                await self._recover(error, places)
                continue
            silent = not any(len(answer.fetched.batches) for answer in answers)
            for answer in answers:
                place = (answer.fetched.topic, answer.fetched.partition)
                if answer.after == answer.offset:
                    self._check_standstill(answer, silent=silent, first=place == places[0])
                elif self.positions.get(place) == answer.offset:
                    del self.positions[place]
                    if not self._reached(place, answer.after):
                        self.positions[place] = answer.after
                    arrived.append(answer)
        return arrived

    def _reached(self, place: TopicPartition, offset: int) -> bool:
        end = self._ends.get(place)
        return end is not None and offset >= end

    def _check_standstill(self, answer: Arrived, *, silent: bool, first: bool) -> None:
        """A partition did not get on. Mostly there is nothing new; two other reasons must not be waited for."""
        fetched = answer.fetched
        if first and len(fetched.batches):
            # Brokers send the first partition's first batch whole, however large it is.
            reason = f"{len(fetched.batches)} bytes were sent, and they hold no whole batch"
            raise CorruptBatch(fetched.topic, fetched.partition, answer.offset, reason)
        readable = fetched.last_stable_offset if self._read_committed else fetched.high_watermark
        if silent and self._reached((fetched.topic, fetched.partition), readable):
            # Compaction took everything between here and the end.
            self.stop_at((fetched.topic, fetched.partition))

    async def _recover(self, error: ClientError, places: list[TopicPartition]) -> None:
        """Make the next poll of these partitions meaningful, or give up."""
        if isinstance(error, Refusal) and error.code is ErrorCode.OFFSET_OUT_OF_RANGE and self._reset is not None:
            found = await list_offsets(self._client, dict.fromkeys(places, self._reset))
            starts = await list_offsets(self._client, dict.fromkeys(places, -2))
            ends = await list_offsets(self._client, dict.fromkeys(places, -1))
            for place in places:
                if not starts[place].offset <= self.positions.get(place, -1) <= ends[place].offset:
                    self.positions[place] = found[place].offset
            return
        if not error.retriable or (isinstance(error, Refusal) and error.code not in MOVED):
            raise error
        for topic in by_topic(places):
            self._client.metadata.forget(topic)
        await asyncio.sleep(self._client.options.retry_backoff_ms / 1000)
