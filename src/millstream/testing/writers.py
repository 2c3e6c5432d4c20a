"""Producers of values that occur once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

from millstream.client.errors import ClientError, Refusal
from millstream.client.produce import ProducerId, init_producer_id
from millstream.protocol.errors import ErrorCode
from millstream.records.building import encode_batch
from millstream.testing.history import Outcome, Sent
from millstream.testing.readers import TOMBSTONE
from millstream.testing.workers import BACKOFF_S, Worker, produce_once, surely_not_written

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.records.building import NewRecord
    from millstream.testing.cluster import SimulatedCluster
    from millstream.testing.history import History, Place

GIVE_UP_AFTER_S = 25.0
KEYS = 4
WRITES_OF_A_KEY = 10
# The broker does not know this producer's place (any more): its numbering is of no use.
RETIRED = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)


class Drawn(NamedTuple):
    """A record to write: a tombstone has no value on the wire, a header carries it."""

    value: str
    key: str | None = None
    deletes: bool = False


class Writer(Worker):
    """An idempotent producer with acks=all: it sends a batch again until it knows how it ended, or gives up."""

    def __init__(self, cluster: SimulatedCluster, name: str, history: History, places: Sequence[Place]) -> None:
        super().__init__(cluster, name, history, pause_s=0.5)
        self._places = places
        self._producer: ProducerId | None = None
        self._sequences: dict[Place, int] = {}
        self._number = 0
        self.acked = 0

    async def step(self) -> None:
        if self._producer is None:
            self._producer = await init_producer_id(self.client)
            self._sequences = {}
        place = self.random.choice(self._places)
        count = self.random.choice((1, 1, 1, 3))
        drawn = [self._draw(f"{self.name}.{self._number + each}") for each in range(count)]
        self._number += count
        now_ms = self.client.ports.clock.wall_ms()
        batch = encode_batch(
            [_record(each, now_ms) for each in drawn],
            producer_id=self._producer.id,
            producer_epoch=self._producer.epoch,
            base_sequence=self._sequences.get(place, 0),
        )
        outcome, offset = await self._deliver(place, bytes(batch))
        if outcome is Outcome.OK:
            self._sequences[place] = self._sequences.get(place, 0) + count
            self.acked += count
        else:
            # Its sequence numbers must not be given to other records.
            self._producer = None
        for position, (value, key, deletes) in enumerate(drawn):
            at = None if offset is None else offset + position
            self.history.sent.append(Sent(value, place, outcome, at, key=key, deletes=deletes))

    def _draw(self, value: str) -> Drawn:
        """What to write next."""
        return Drawn(value)

    async def _deliver(self, place: Place, batch: bytes) -> tuple[Outcome, int | None]:
        deadline_s = self.now_s() + GIVE_UP_AFTER_S
        maybe_written = False
        while True:
            try:
                return Outcome.OK, await produce_once(self.client, place, batch)
            except ClientError as error:
                maybe_written |= not surely_not_written(error)
                retired = isinstance(error, Refusal) and error.code in RETIRED
                if retired or self.now_s() >= deadline_s:
                    return Outcome.UNKNOWN if maybe_written else Outcome.FAILED, None
            self.client.metadata.forget(place[0])
            await asyncio.sleep(BACKOFF_S * (1 + self.random.random()))


class KeyedWriter(Writer):
    """Writes a few keys again and again to a compacted topic, deletes some, and goes on to others.

    The keys are its own, so the order in which it writes them is the order in the log. What it leaves behind stays as
    it is from then on, through every compaction.
    """

    async def step(self) -> None:
        if self.random.random() < 0.1:
            await self._send_without_key()
        else:
            await super().step()

    async def _send_without_key(self) -> None:
        """A compacted topic takes no record without a key: this one is refused, and must not be read."""
        value, place = f"{self.name}.{self._number}", self.random.choice(self._places)
        self._number += 1
        batch = encode_batch([(None, value.encode(), (), self.client.ports.clock.wall_ms())])
        outcome, offset = Outcome.OK, None
        try:
            offset = await produce_once(self.client, place, batch, impossible=(ErrorCode.CORRUPT_MESSAGE,))
        except ClientError as error:
            outcome = Outcome.FAILED if surely_not_written(error) else Outcome.UNKNOWN
        self.history.sent.append(Sent(value, place, outcome, offset, idempotent=False))

    def _draw(self, value: str) -> Drawn:
        key = f"{self.name}/{self._number // WRITES_OF_A_KEY + self.random.randrange(KEYS)}"
        return Drawn(value, key, deletes=self.random.random() < 0.3)


def _record(drawn: Drawn, now_ms: int) -> NewRecord:
    key = (drawn.key or "key").encode()
    if drawn.deletes:
        return key, None, ((TOMBSTONE, drawn.value.encode()),), now_ms
    return key, drawn.value.encode(), (), now_ms
