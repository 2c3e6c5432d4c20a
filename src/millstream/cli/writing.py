"""Records from a command to the brokers: spread over partitions, in batches, sent while the next are read."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.cli.declare import UsageError
from millstream.client.partitioning import Partitioner
from millstream.client.produce import Produced, Producer
from millstream.records.codecs import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from millstream.client.client import Client
    from millstream.client.metadata import Topic
    from millstream.client.sync import SyncClient

    NewRecord = tuple[bytes | None, bytes | None, Sequence[tuple[str, bytes | None]], int]

BATCH_BYTES = 256 * 1024
PENDING_BYTES_MAX = 4 * 1024 * 1024
RECORD_OVERHEAD_BYTES = 20
CODECS = tuple(codec.name.lower() for codec in Codec)
ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}


@dataclass(slots=True)
class Written:
    """What went into one partition."""

    records: int = 0
    first_offset: int = -1
    last_offset: int = -1


class RecordWriter:
    """Takes records one by one; `flush` returns when all are answered for."""

    def __init__(
        self,
        client: SyncClient,
        topic: str,
        *,
        acks: int = -1,
        codec: Codec = Codec.NONE,
        partition: int | None = None,
        create_topic: bool = True,
    ) -> None:
        self.written: dict[int, Written] = {}
        self._client = client
        self._topic = topic
        self._fixed_partition = partition
        self._producer = Producer(client.client, acks=acks, codec=codec)
        found = client.run(_find_topic, topic, create_topic)
        self._count = len(found.partitions)
        self._partitioner = Partitioner(self._count, client.client.ports.random, sticky_bytes=BATCH_BYTES)
        if partition is not None:
            found.partition(partition)
        self._pending: dict[int, list[NewRecord]] = {}
        self._pending_bytes: dict[int, int] = {}
        self._sending: Future[dict[int, Produced]] | None = None
        self._sent: dict[int, list[NewRecord]] = {}

    def add(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        timestamp_ms: int | None = None,
        partition: int | None = None,
    ) -> None:
        size = len(key or b"") + len(value or b"") + RECORD_OVERHEAD_BYTES
        chosen = self._fixed_partition if partition is None else partition
        if chosen is None:
            chosen = self._partitioner.choose(key, size)
        elif not 0 <= chosen < self._count:
            raise UsageError(f"topic {self._topic!r} has no partition {chosen}, only 0 to {self._count - 1}")
        if timestamp_ms is None:
            timestamp_ms = self._client.client.ports.clock.wall_ms()
        held = self._pending_bytes.get(chosen, 0)
        if held and held + size > BATCH_BYTES:
            self.send()
            held = 0
        self._pending.setdefault(chosen, []).append((key, value, headers, timestamp_ms))
        self._pending_bytes[chosen] = held + size
        if sum(self._pending_bytes.values()) > PENDING_BYTES_MAX:
            self.send()

    def send(self) -> None:
        """Start sending what is pending; one such round is under way at a time."""
        self._finish_round()
        if not self._pending:
            return
        self._sent, self._pending = self._pending, {}
        self._pending_bytes.clear()
        self._partitioner.move_on()
        self._sending = self._client.start(_send_all, self._producer, self._topic, self._sent)

    def flush(self) -> None:
        self.send()
        self._finish_round()

    def _finish_round(self) -> None:
        if self._sending is None:
            return
        sending, self._sending = self._sending, None
        for partition, produced in self._client.wait(sending).items():
            count = len(self._sent[partition])
            written = self.written.setdefault(partition, Written())
            written.records += count
            if produced.base_offset >= 0:
                if written.first_offset < 0:
                    written.first_offset = produced.base_offset
                written.last_offset = produced.base_offset + count - 1


async def _find_topic(client: Client, name: str, create: bool) -> Topic:  # noqa: FBT001 - called by position
    """The topic, made by the broker if it does that by itself; a fresh one takes a moment to have leaders."""

    async def attempt() -> Topic:
        return await client.metadata.topic(name, create=create)

    return await client.retrying(attempt, timeout_ms=min(5_000, client.options.api_timeout_ms), topic=name)


async def _send_all(
    _: Client, producer: Producer, topic: str, batches: dict[int, list[NewRecord]]
) -> dict[int, Produced]:
    answers = await asyncio.gather(*(producer.send(topic, index, records) for index, records in batches.items()))
    return dict(zip(batches, answers, strict=True))


def parse_acks(text: str) -> int:
    if text not in ACKS:
        raise UsageError(f"acks must be 0, 1 or all, not {text!r}")
    return ACKS[text]


def parse_codec(text: str) -> Codec:
    if text.lower() not in CODECS:
        raise UsageError(f"compression must be one of {', '.join(CODECS)}, not {text!r}")
    return Codec[text.upper()]
