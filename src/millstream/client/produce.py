"""Produce: whole record batches to the leaders of their partitions.

`produce` sends batches that somebody encoded, until `delivery.timeout.ms` is over. A refusal that says "not written" is
tried again at the new leader. Where nobody knows, because the connection was lost or no answer came within
`request.timeout.ms`, that happens only if the batch carries a producer id, since only then the broker recognises the
copy. So no record is ever doubled here. `Producer` encodes batches itself, idempotent unless told otherwise.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.client.client import ANY, CoordinatorKind, CoordinatorOf
from millstream.client.errors import ConnectionLost, Refusal, TimedOut, partition_subject, refuse
from millstream.client.grouping import by_leader, by_topic
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.records.batch import read_header
from millstream.records.building import encode_batch
from millstream.records.codecs import Codec

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from millstream.client.client import Client
    from millstream.client.grouping import TopicPartition
    from millstream.protocol.messages.produce import ProduceResponse

    Buffer = bytes | bytearray | memoryview
    NewRecord = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int]

ALL_IN_SYNC = -1
SEQUENCES = 1 << 31


@dataclass(frozen=True, slots=True)
class Produced:
    """Where a batch landed; all -1 with acks=0, and for a batch that the broker had already."""

    base_offset: int
    log_append_time_ms: int
    log_start_offset: int


NOWHERE = Produced(-1, -1, -1)


async def produce(
    client: Client,
    batches: Mapping[TopicPartition, Buffer],
    *,
    acks: int = ALL_IN_SYNC,
    timeout_ms: int | None = None,
    transactional_id: str | None = None,
    version_max: int = 32767,
) -> dict[TopicPartition, Produced]:
    """Write one batch to each of these partitions; raises the last error if it does not pass in time.

    With acks=0 nothing is heard of a failure, and nothing is sent again: right after a topic was created, its leader
    may not know of it yet, and such a batch is lost.
    """
    pending = dict(batches)
    produced: dict[TopicPartition, Produced] = {}

    async def attempt() -> None:
        written, failure = await produce_once(
            client, pending, acks=acks, transactional_id=transactional_id, version_max=version_max
        )
        produced.update(written)
        for place in written:
            pending.pop(place, None)
        if failure is not None:
            for topic in by_topic(pending):
                client.metadata.forget(topic)
            raise unless_safe(failure, pending)

    patience_ms = client.options.delivery_timeout_ms if timeout_ms is None else timeout_ms
    await client.retrying(attempt, timeout_ms=patience_ms, past_silence=True)
    return {place: produced[place] for place in batches}


async def produce_once(
    client: Client,
    batches: Mapping[TopicPartition, Buffer],
    *,
    acks: int = ALL_IN_SYNC,
    transactional_id: str | None = None,
    version_max: int = 32767,
) -> tuple[dict[TopicPartition, Produced], BaseException | None]:
    """Send each batch to its leader, one request to each; what was written, and the first thing that went wrong."""
    leaders = await by_leader(client, batches)
    outcomes: list[dict[TopicPartition, Produced | Refusal] | BaseException]
    if len(leaders) == 1:
        # A task less. One turn of the loop later, as tasks begin, or this would overtake a call before it for several.
        await asyncio.sleep(0)
        (node,) = leaders
        try:
            outcomes = [await _send(client, node, batches, acks, transactional_id, version_max)]
        except Exception as error:  # noqa: BLE001  # as what is gathered below
            outcomes = [error]
    else:
        outcomes = await asyncio.gather(
            *(
                _send(client, node, {place: batches[place] for place in places}, acks, transactional_id, version_max)
                for node, places in leaders.items()
            ),
            return_exceptions=True,
        )
    produced: dict[TopicPartition, Produced] = {}
    failure: BaseException | None = None
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            failure = failure or outcome
            continue
        for place, result in outcome.items():
            if isinstance(result, Refusal):
                failure = failure or result
            else:
                produced[place] = result
    return produced, failure


def unless_safe(failure: BaseException, pending: Mapping[TopicPartition, Buffer]) -> BaseException:
    """A retriable failure stays retriable only if sending again cannot write the records twice."""
    if isinstance(failure, ConnectionLost | TimedOut) and not all(
        read_header(batch).has_producer for batch in pending.values()
    ):
        return _Unknown(f"{failure}; whether the records were written is unknown")
    return failure


class _Unknown(ConnectionLost):
    """Not to be tried again."""

    retriable = False


async def _send(
    client: Client,
    node: int,
    batches: Mapping[TopicPartition, Buffer],
    acks: int,
    transactional_id: str | None,
    version_max: int,
) -> dict[TopicPartition, Produced | Refusal]:
    topics = []
    for name, indexes in by_topic(batches).items():
        topic = await client.metadata.topic(name)
        data = [PartitionProduceData(index=index, records=batches[name, index]) for index in indexes]
        topics.append(TopicProduceData(name=name, topic_id=topic.id, partition_data=data))
    has_ids = all(any(topic.topic_id) for topic in topics)
    at_most = version_max if has_ids else min(version_max, 12)
    # As in Java the broker is told to give up when the client does: nothing comes on top, or a leader that hangs would
    # use up the time in which its successor could take the batch.
    patience_ms = min(client.options.request_timeout_ms, client.options.delivery_timeout_ms)
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=patience_ms, topic_data=topics)
    connection = await client.connection(node)
    version = connection.pick_version(ProduceRequest, at_most=at_most)
    if acks == 0:
        await connection.send(request, version, timeout_ms=patience_ms)
        return dict.fromkeys(batches, NOWHERE)
    response: ProduceResponse = await connection.call(request, version, timeout_ms=patience_ms)
    outcomes: dict[TopicPartition, Produced | Refusal] = {}
    for answer in response.responses:
        name = answer.name or client.metadata.name_of(answer.topic_id) or ""
        for part in answer.partition_responses:
            place = (name, part.index)
            if part.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                outcomes[place] = NOWHERE
            elif part.error_code:
                said = part.record_errors[0].batch_index_error_message if part.record_errors else None
                outcomes[place] = Refusal(
                    part.error_code, said or part.error_message, subject=partition_subject(*place)
                )
            else:
                outcomes[place] = Produced(part.base_offset, part.log_append_time_ms, part.log_start_offset)
    return outcomes


@dataclass(frozen=True, slots=True)
class ProducerId:
    """What makes a producer's batches recognisable."""

    id: int
    epoch: int


async def init_producer_id(
    client: Client,
    *,
    transactional_id: str | None = None,
    transaction_timeout_ms: int | None = None,
) -> ProducerId:
    """A fresh producer id; with a transactional id its owner's, at a new epoch that fences the one before.

    Its transactions may take as long as said here, or else as `transaction.timeout.ms` among the options.
    """
    timeout_ms = client.options.transaction_timeout_ms if transaction_timeout_ms is None else transaction_timeout_ms
    node = ANY if transactional_id is None else CoordinatorOf(transactional_id, CoordinatorKind.TRANSACTION)
    subject = "" if transactional_id is None else f"transactional id {transactional_id!r}"

    async def attempt() -> ProducerId:
        response: InitProducerIdResponse = await client.call(
            InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=timeout_ms),
            node=node,
        )
        refuse(response.error_code, subject=subject)
        return ProducerId(response.producer_id, response.producer_epoch)

    return await client.retrying(attempt, past_silence=True)


class _Numbering:
    """A producer id and where each partition's sequence stands."""

    __slots__ = ("id", "sequences")

    def __init__(self, identity: ProducerId) -> None:
        self.id = identity
        self.sequences: dict[TopicPartition, int] = {}


class Producer:
    """Encodes records into batches and writes them, each partition in order.

    After a send that failed, nobody may know whether its records were written. Their sequence numbers must not be given
    to other records: a broker that has them would take the new ones for a copy, answer that all is well and drop them.
    So a failure retires the producer id, and the next send starts with a fresh one.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: int = ALL_IN_SYNC,
        idempotent: bool = True,
        codec: Codec = Codec.NONE,
        timeout_ms: int | None = None,
    ) -> None:
        self._client = client
        self._acks = acks
        # Idempotence needs the answer of all in-sync replicas, as in Kafka.
        self._idempotent = idempotent and acks == ALL_IN_SYNC
        self._codec = codec
        self._timeout_ms = timeout_ms
        self._numbering: _Numbering | None = None
        self._identifying = asyncio.Lock()
        self._turns: dict[TopicPartition, asyncio.Lock] = {}

    async def send(self, topic: str, partition: int, records: Sequence[NewRecord]) -> Produced:
        """Write records (key, value, headers, timestamp in ms) as one batch."""
        place = (topic, partition)
        async with self._turns.setdefault(place, asyncio.Lock()):
            if not self._idempotent:
                return await self._write(place, encode_batch(records, codec=self._codec))
            numbering = await self._current_numbering()
            sequence = numbering.sequences.get(place, 0)
            batch = encode_batch(
                records,
                codec=self._codec,
                producer_id=numbering.id.id,
                producer_epoch=numbering.id.epoch,
                base_sequence=sequence,
            )
            try:
                produced = await self._write(place, batch)
            except BaseException:
                # Cancellation too: the request may be on its way.
                if self._numbering is numbering:
                    self._numbering = None
                raise
            numbering.sequences[place] = (sequence + len(records)) % SEQUENCES
            return produced

    async def _write(self, place: TopicPartition, batch: Buffer) -> Produced:
        return (await produce(self._client, {place: batch}, acks=self._acks, timeout_ms=self._timeout_ms))[place]

    async def _current_numbering(self) -> _Numbering:
        async with self._identifying:
            if self._numbering is None:
                self._numbering = _Numbering(await init_producer_id(self._client))
            return self._numbering
