"""Transactional producers: some partitions, sometimes a group's offset, then commit or abort. Some read in between."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.client.errors import ClientError
from millstream.client.groups import Committed
from millstream.client.produce import init_producer_id
from millstream.client.transactions import (
    Transaction,
    add_partitions,
    adds_partitions_implicitly,
    commit_offsets_in,
    end_transaction,
)
from millstream.records.building import encode_batch
from millstream.testing import history as noted
from millstream.testing.history import Outcome, Polled, Sent
from millstream.testing.readers import read_once
from millstream.testing.workers import BACKOFF_S, Worker, produce_once

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.testing.cluster import SimulatedCluster
    from millstream.testing.history import History, Place

TRANSACTION_TIMEOUT_MS = 10_000
SEND_FOR_S = 6.0
PAUSE_IN_TRANSACTION_S = 0.3
READ_BACK = 10


class Transactor(Worker):
    """One transactional id, one transaction after the other."""

    def __init__(self, cluster: SimulatedCluster, name: str, history: History, places: Sequence[Place]) -> None:
        super().__init__(cluster, name, history, pause_s=0.5)
        self._places = places
        self._transaction: Transaction | None = None
        self._sequences: dict[Place, int] = {}
        self._number = 0
        self._offset = 0
        self._written: dict[Place, int] = {}
        """Where the records of the open transaction stand."""
        self._offsets: dict[Place, Committed] = {}
        """Of the open transaction, for the group that has this worker's name in it."""
        self.committed = 0

    @property
    def _group(self) -> str:
        return f"{self.name}-group"

    async def step(self) -> None:
        if self._transaction is None:
            identity = await init_producer_id(
                self.client, transactional_id=self.name, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS
            )
            implicit = await adds_partitions_implicitly(self.client)
            self._transaction, self._sequences = Transaction(self.name, identity, implicit), {}
        self._number += 1
        name = f"{self.name}#{self._number}"
        # Until a commit is asked for, nothing of it can ever be committed.
        self.history.transactions[name] = Outcome.FAILED
        try:
            await self._write(name, self._transaction)
            await self._before_end(name)
            if self.random.random() < 0.75:
                self.history.transactions[name] = Outcome.UNKNOWN
                await self._end(self._transaction, commit=True)
                self.history.transactions[name] = Outcome.OK
                self.committed += 1
                self.history.committed += [
                    noted.Committed(self._group, place, each.offset) for place, each in self._offsets.items()
                ]
            else:
                await self._end(self._transaction, commit=False)
        except ClientError:
            # Whatever stands is ended by the next owner of this id: us, in a new epoch.
            self._transaction = None
            raise

    async def _before_end(self, name: str) -> None:
        """What else belongs to the transaction."""

    async def _write(self, name: str, transaction: Transaction) -> None:
        self._written, self._offsets = {}, {}
        places = self.random.sample(self._places, min(len(self._places), self.random.randint(1, 3)))
        if not transaction.implicit:
            await add_partitions(self.client, transaction, places)
        for place in places:
            value = f"{name}.{place[0]}-{place[1]}"
            batch = encode_batch(
                [(b"key", value.encode(), (), self.client.ports.clock.wall_ms())],
                producer_id=transaction.producer.id,
                producer_epoch=transaction.producer.epoch,
                base_sequence=self._sequences.get(place, 0),
                transactional=True,
            )
            try:
                offset = await self._send(place, bytes(batch), transaction)
            except ClientError:
                self.history.sent.append(Sent(value, place, Outcome.UNKNOWN, transaction=name))
                raise
            self._sequences[place] = self._sequences.get(place, 0) + 1
            self.history.sent.append(Sent(value, place, Outcome.OK, offset, transaction=name))
            if offset is not None:
                self._written[place] = offset
        if self.random.random() < 0.3:
            self._offset += 1
            self._offsets = {places[0]: Committed(self._offset)}
            await commit_offsets_in(self.client, transaction, self._group, self._offsets)

    async def _send(self, place: Place, batch: bytes, transaction: Transaction) -> int | None:
        deadline_s = self.now_s() + SEND_FOR_S
        while True:
            try:
                return await produce_once(
                    self.client,
                    place,
                    batch,
                    transactional_id=transaction.id,
                    version_max=transaction.produce_version_max,
                )
            except ClientError as error:
                if not error.retriable or self.now_s() >= deadline_s:
                    raise
            self.client.metadata.forget(place[0])
            await asyncio.sleep(BACKOFF_S * (1 + self.random.random()))

    async def _end(self, transaction: Transaction, *, commit: bool) -> None:
        producer = await end_transaction(self.client, transaction, commit=commit)
        if producer != transaction.producer:
            self._sequences = {}
        self._transaction = Transaction(transaction.id, producer, transaction.implicit)


class ReadingTransactor(Transactor):
    """Reads committed records around its own in the middle of each transaction: never its own, nor a circle of others'.

    The pause lets transactions of several such workers overlap.
    """

    async def _before_end(self, name: str) -> None:
        await asyncio.sleep(self.random.random() * PAUSE_IN_TRANSACTION_S)
        for place, offset in self._written.items():
            records, _ = await read_once(self.client, place, max(offset - READ_BACK, 0), committed_only=True)
            if records:
                found = tuple((place, at, value) for at, value in records)
                self.history.polled.append(Polled(self.name, found, fresh=frozenset({place}), transaction=name))
