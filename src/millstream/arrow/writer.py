"""Rows on their way to the log: encoded in the caller's thread while the batches before them are sent.

A turn takes one batch for each partition that has rows, until it has grown to `TURN_BYTES`; they go out together, one
request to each broker. Up to `TURNS_MAX` of them are under way at once (`client.in_order` says how the order is kept),
and the next is encoded meanwhile: so much is in memory, and no more. Without a producer id a partition has only one
batch under way, and so has a partition that has not acknowledged its first.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from millstream.arrow.cutting import pieces
from millstream.arrow.encoding import Encoder, fitting, rows_of
from millstream.arrow.routing import Router, UnknownPartition
from millstream.client.errors import ClientError
from millstream.client.groups import commit_offsets
from millstream.client.in_order import IN_FLIGHT_MAX, InOrder
from millstream.client.limits import batch_bytes_max
from millstream.client.produce import ALL_IN_SYNC, SEQUENCES, Produced, init_producer_id, produce
from millstream.client.transactions import (
    Transaction,
    add_partitions,
    adds_partitions_implicitly,
    commit_offsets_in,
    end_transaction,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from concurrent.futures import Future

    import pyarrow as pa

    from millstream.arrow.encoding import Names, Rows
    from millstream.arrow.routing import PartitionBy
    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.client.groups import Committed
    from millstream.client.sync import SyncClient
    from millstream.records.codecs import Codec

# A batch as large as a broker takes by default (max.message.bytes is 1,048,588), and a request for each that is full.
# Half of it, in requests of 3 MB, cost the broker a tenth more and the client as much, and 15 MB under way were in
# nobody's cache; requests of half the size cost the client a third more.
BATCH_BYTES: Final = 1_000_000
TURN_BYTES: Final = 900_000
# Where nobody may ask how large a batch the topic takes: brokers before Kafka 2.5 took 1,000,012, and some take less.
CAUTIOUS_BYTES: Final = 512 * 1024
NO_ANSWER: Final = 0
TURNS_MAX: Final = IN_FLIGHT_MAX


class Written(NamedTuple):
    """What became of the rows for one partition; with other writers about, some offsets between are theirs."""

    first_offset: int
    last_offset: int
    records: int


class _UnderWay(NamedTuple):
    """A turn that was sent."""

    answer: Future[dict[TopicPartition, Produced]]
    batches: dict[TopicPartition, memoryview]
    records: dict[TopicPartition, int]


class Writer:
    """Writes record batches, in order and each once, with one producer id; after an error it can only be given up."""

    def __init__(
        self,
        client: SyncClient,
        *,
        codec: Codec,
        acks: int,
        partition_by: PartitionBy,
        transaction: Transaction | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._client = client
        self._acks = acks
        self._partition_by = partition_by
        self._transaction = transaction
        self._batch_bytes = batch_bytes
        self._codec = codec
        producer = transaction.producer if transaction is not None else None
        if producer is None and acks == ALL_IN_SYNC:
            producer = client.run(init_producer_id)
        self._numbered = producer is not None
        self._new_encoder = partial(Encoder, codec, producer=producer, transactional=transaction is not None)
        # Topics that take batches of the same size share one, and its spare memory.
        self._encoders: dict[str, Encoder] = {}
        self._encoders_by_bytes: dict[int, Encoder] = {}
        self._in_order = _in_order(acks, transaction)
        self._routers: dict[str, Router] = {}
        self._sequences: dict[TopicPartition, int] = {}
        self._enlisted: dict[TopicPartition, bool] = {}
        self._open = False
        self._turn: dict[TopicPartition, memoryview] = {}
        self._turn_records: dict[TopicPartition, int] = {}
        self._turn_bytes = 0
        self._under_way: deque[_UnderWay] = deque()
        self._written: dict[TopicPartition, Written] = {}

    def write(self, topic: str, batch: pa.RecordBatch, names: Names) -> None:
        """Encode rows and send them; returns while the last of them are under way."""
        if batch.num_rows > 0:
            for piece in pieces(batch, names):
                self._write(topic, piece, names)

    def _write(self, topic: str, batch: pa.RecordBatch, names: Names) -> None:
        rows = rows_of(batch, names, self._client.client.ports.clock.wall_ms())
        order, starts = self._route(topic, batch, rows)
        encoder = self._encoders[topic]
        left = {index: starts[index] for index in range(len(starts) - 1) if starts[index] < starts[index + 1]}
        while left:
            for index, at in list(left.items()):
                place = (topic, index)
                sequence = self._sequences.get(place, 0)
                encoded, after = encoder.encode(rows, order, at, starts[index + 1], sequence)
                self._sequences[place] = (sequence + after - at) % SEQUENCES
                left[index] = after
                if after == starts[index + 1]:
                    del left[index]
                self._add(place, encoded, after - at)
            self._send()

    def finish(self) -> dict[TopicPartition, Written]:
        """Wait for everything; where it is."""
        self._send()
        while self._under_way:
            self._settle()
        return dict(sorted(self._written.items()))

    def commit(self, group: str, offsets: Mapping[TopicPartition, Committed]) -> None:
        """Store a group's offsets: with the transaction, or at once where there is none."""
        if self._transaction is None:
            self._client.run(commit_offsets, group, offsets)
        else:
            self._open = True
            self._client.run(commit_offsets_in, self._transaction, group, offsets)

    def end(self, *, committed: bool) -> None:
        """End the transaction, if there is one and anything happened in it."""
        if self._transaction is not None and self._open:
            self._open = False
            self._client.run(end_transaction, self._transaction, commit=committed)

    def give_up(self) -> None:
        """After an error: what is under way comes to its end, the transaction is aborted if that is still possible."""
        while self._under_way:
            with suppress(ClientError):
                self._settle()
        # A producer that was fenced has nothing to abort any more; the coordinator's timeout ends what is left.
        with suppress(ClientError):
            self.end(committed=False)

    def _route(self, topic: str, batch: pa.RecordBatch, rows: Rows) -> tuple[memoryview, memoryview]:
        try:
            return self._router(topic).route(batch, rows)
        except UnknownPartition:
            # Who chose it may know more than this client: the topic has grown since.
            self._client.client.metadata.forget(topic)
            del self._routers[topic]
            return self._router(topic).route(batch, rows)

    def _router(self, topic: str) -> Router:
        router = self._routers.get(topic)
        if router is None:
            partitions, bytes_max = self._client.run(_shape_of, topic)
            batch_bytes = fitting(bytes_max or CAUTIOUS_BYTES, self._batch_bytes, self._codec)
            first = self._client.client.ports.random.below(partitions)
            router = Router(partitions, self._partition_by, first=first, sticky_bytes=batch_bytes)
            self._routers[topic] = router
            if batch_bytes not in self._encoders_by_bytes:
                self._encoders_by_bytes[batch_bytes] = self._new_encoder(batch_bytes)
            self._encoders[topic] = self._encoders_by_bytes[batch_bytes]
        return router

    def _add(self, place: TopicPartition, encoded: memoryview, records: int) -> None:
        self._turn[place] = encoded
        self._turn_records[place] = records
        # What it holds in memory, of which some may be empty.
        self._turn_bytes += len(encoded.obj)  # type: ignore[arg-type]  # bytes or a bytearray
        if self._turn_bytes >= TURN_BYTES:
            self._send()

    def _send(self) -> None:
        """Let the turn go as soon as it may."""
        if not self._turn:
            return
        while len(self._under_way) == TURNS_MAX or self._must_wait():
            self._settle()
        fresh = [place for place in self._turn if place not in self._enlisted]
        self._enlisted.update(dict.fromkeys(fresh, True))
        self._open = True
        if self._numbered:
            answer = self._client.start(_produce_numbered, self._in_order, self._turn, fresh, self._transaction)
        else:
            answer = self._client.start(_produce_unnumbered, self._turn, self._acks)
        self._under_way.append(_UnderWay(answer, self._turn, self._turn_records))
        self._turn, self._turn_records, self._turn_bytes = {}, {}, 0

    def _must_wait(self) -> bool:
        """Whether a batch before must arrive first: always without numbers, with them if it is a partition's first."""
        return any(
            place in sent.batches and not (self._numbered and place in self._written)
            for sent in self._under_way
            for place in self._turn
        )

    def _settle(self) -> None:
        """Wait for the oldest turn."""
        sent = self._under_way.popleft()
        for place, produced in self._client.wait(sent.answer).items():
            before = self._written.get(place, Written(produced.base_offset, -1, 0))
            records = sent.records[place]
            last = produced.base_offset + records - 1 if produced.base_offset >= 0 else -1
            self._written[place] = Written(before.first_offset, last, before.records + records)
        if self._acks != NO_ANSWER:
            # Without an answer nobody knows whether the transport has sent them yet.
            for (topic, _), batch in sent.batches.items():
                self._encoders[topic].give_back(batch)


async def begin(client: Client, transactional_id: str) -> Transaction:
    """A producer for a transaction, at an epoch that fences the ones before."""
    producer = await init_producer_id(client, transactional_id=transactional_id)
    return Transaction(transactional_id, producer, await adds_partitions_implicitly(client))


async def _shape_of(client: Client, topic: str) -> tuple[int, int | None]:
    """(the number of partitions, the largest batch they take); the topic is made if the broker makes topics."""
    found = await client.retrying(lambda: client.metadata.topic(topic, create=True), past_silence=True)
    return len(found.partitions), await batch_bytes_max(client, topic)


def _in_order(acks: int, transaction: Transaction | None) -> InOrder:
    if transaction is None:
        return InOrder(acks)
    return InOrder(acks, transactional_id=transaction.id, version_max=transaction.produce_version_max)


async def _produce_numbered(
    client: Client,
    in_order: InOrder,
    batches: Mapping[TopicPartition, memoryview],
    fresh: list[TopicPartition],
    transaction: Transaction | None,
) -> dict[TopicPartition, Produced]:
    if fresh and transaction is not None and not transaction.implicit:
        await add_partitions(client, transaction, fresh)
    return await in_order.send(client, batches)


async def _produce_unnumbered(
    client: Client, batches: Mapping[TopicPartition, memoryview], acks: int
) -> dict[TopicPartition, Produced]:
    return await produce(client, batches, acks=acks)
