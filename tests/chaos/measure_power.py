"""What a producer loses or doubles when the power goes, at every moment of its work: the simulator's part of the table.

One producer writes numbered records to two partitions of the real broker, on virtual time and a disk that loses what
was not synced. A dry run counts the disk's steps and the time; then the same work runs once for every step (a write, an
fsync, a rename) and for moments in between (an answer under way is lost too), with the power going there, for several
seeds: which unsynced bytes survive is up to chance. After the restart the producer goes on as its kind does: it sends
again what was not acknowledged, except that with acks=0 it believes that all is well. The transactional one finds out
from a group's offset, committed in the same transaction, where it has to go on.

The crash may also be of the process alone: then the disk keeps everything.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.errors import ClientError, Refusal
from millstream.client.fetch import fetch
from millstream.client.groups import Committed, committed_offsets
from millstream.client.offsets import LATEST, list_offsets
from millstream.client.produce import init_producer_id, produce
from millstream.client.reading import batches_from, next_offset
from millstream.client.transactions import (
    Transaction,
    adds_partitions_implicitly,
    commit_offsets_in,
    end_transaction,
)
from millstream.protocol.errors import ErrorCode
from millstream.records.building import encode_batch
from millstream.testing.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from millstream.client.produce import ProducerId

TOPIC, GROUP, TRANSACTIONAL_ID = "measured", "measured", "measured"
PARTITIONS = 2
# Records, or transactions of one record for each partition.
COUNT = 10
MOMENTS = 50
ACKS = {"acks=0": 0, "acks=1": 1, "acks=all": -1, "idempotence": -1}
KINDS = (*ACKS, "transactions")
GAPS = {ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID}


@dataclass
class Told:
    """What the producer knows: what it was told is written, and where it stands."""

    next: int = 0
    acknowledged: list[int] = field(default_factory=list)
    producer: ProducerId | None = None
    # The number that has sequence 0 in its partition.
    first: int = 0
    took_s: float = 0.0


@dataclass
class Outcome:
    """Counted over all crashes of one kind of producer."""

    crashes: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    torn: int = 0
    # Crashes after which the producer could not go on: an open transaction that nobody remembers.
    hung: int = 0

    def add(self, acknowledged: list[int], found: list[list[int]], *, transactional: bool) -> None:
        """One crash: the numbers that were acknowledged before it, and those in each partition at the end."""
        everything = [number for partition in found for number in partition]
        if transactional:
            # Every number belongs into every partition.
            self.torn += sum(1 for number in set(everything) if any(number not in each for each in found))
            everything = found[0]
        present = set(everything)
        self.crashes += 1
        self.acknowledged += len(acknowledged)
        self.lost += sum(1 for number in acknowledged if number not in present)
        self.doubled += len(everything) - len(present)


@dataclass(frozen=True)
class Crash:
    """When: at a step of the disk, or so long after the start of the work."""

    step: int | None = None
    after_s: float | None = None


def measure(kind: str, *, lose_unsynced: bool, seeds: int, settings: dict[str, str] | None = None) -> Outcome:
    """Crash one kind of producer at every step of the disk and at moments in between, with so many seeds."""
    steps_before, steps, took_s = _dry_run(kind, settings)
    crashes = [Crash(step=step) for step in range(steps_before + 1, steps + 1)]
    # The last finds all work done and nothing synced that nobody asked for.
    crashes += [Crash(after_s=took_s * number / MOMENTS) for number in range(1, MOMENTS + 1)]
    outcome = Outcome()
    for seed in range(1, seeds + 1):
        for crash in crashes:
            machine, told = _machine(seed, settings), Told()
            machine.run(_prepare)
            machine.disk.power_off_at = crash.step
            machine.run(_work(kind, told, crash.after_s), stop_cleanly=False)
            acknowledged = list(told.acknowledged)
            machine.disk.crash(keep_unsynced=not lose_unsynced)
            try:
                machine.run(_work(kind, told))
            except ClientError:
                outcome.hung += 1
                machine.disk.crash(keep_unsynced=True)
            found: list[list[int]] = []
            machine.run(_read(found))
            outcome.add(acknowledged, found, transactional=kind == "transactions")
    return outcome


def _machine(seed: int, settings: dict[str, str] | None) -> Machine:
    few = {"offsets.topic.num.partitions": "1", "transaction.state.log.num.partitions": "1"}
    return Machine(seed=seed, settings=few | (settings or {}))


def _dry_run(kind: str, settings: dict[str, str] | None) -> tuple[int, int, float]:
    """Steps before and after the work when nothing disturbs it, and how long it takes."""
    machine, told = _machine(1, settings), Told()
    machine.run(_prepare)
    steps_before = machine.disk.steps
    machine.run(_work(kind, told), stop_cleanly=False)
    assert len(told.acknowledged) == COUNT, f"{kind} wrote {told.acknowledged}"
    return steps_before, machine.disk.steps, told.took_s


async def _prepare(at: Machine) -> None:
    """A topic, and a clean stop: its creation is not what is measured."""
    made = (await create_topics(at.client, [NewTopic(TOPIC, PARTITIONS, 1, {})]))[TOPIC]
    assert not isinstance(made, Refusal), made


def _work(kind: str, told: Told, power_off_after_s: float | None = None) -> Callable[[Machine], Awaitable[None]]:
    async def run(at: Machine) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        if power_off_after_s is not None:
            loop.call_later(power_off_after_s, at.disk.power_off)
        if kind == "transactions":
            await _write_transactions(at, told)
        else:
            await _write_records(at, told, kind)
        told.took_s = loop.time() - began_s

    return run


async def _write_records(at: Machine, told: Told, kind: str) -> None:
    if kind == "idempotence" and told.producer is None:
        told.producer = await init_producer_id(at.client)
    while told.next < COUNT:
        number = told.next
        batch = _batch(at, number, told.producer, (number - told.first) // PARTITIONS)
        try:
            await produce(at.client, {(TOPIC, number % PARTITIONS): batch}, acks=ACKS[kind])
        except Refusal as refusal:
            if told.producer is None or refusal.code not in GAPS:
                raise
            # The broker has forgotten what came before. Kafka's clients start over with a new identity (KIP-360).
            told.producer, told.first = await init_producer_id(at.client), number
            continue
        told.acknowledged.append(number)
        told.next = number + 1
    if kind == "acks=0":
        # A question on the same connection: its answer comes after the last records have arrived.
        await list_offsets(at.client, {(TOPIC, 0): LATEST})


async def _write_transactions(at: Machine, told: Told) -> None:
    """Each transaction has a record for every partition, and says in a group's offset how far the work has come."""
    client = at.client
    place = (TOPIC, 0)
    producer = await init_producer_id(client, transactional_id=TRANSACTIONAL_ID)
    implicit = await adds_partitions_implicitly(client)
    assert implicit, "a new cluster has transaction.version 2"
    committed = (await committed_offsets(client, GROUP, [place])).get(place)
    number = 0 if committed is None else max(0, committed.offset)
    while number < COUNT:
        transaction = Transaction(TRANSACTIONAL_ID, producer, implicit)
        for partition in range(PARTITIONS):
            batch = _batch(at, number, producer, 0, transactional=True)
            await produce(client, {(TOPIC, partition): batch}, transactional_id=TRANSACTIONAL_ID)
        await commit_offsets_in(client, transaction, GROUP, {place: Committed(number + 1)})
        producer = await end_transaction(client, transaction, commit=True)
        told.acknowledged.append(number)
        number += 1


def _batch(
    at: Machine, number: int, producer: ProducerId | None, sequence: int, *, transactional: bool = False
) -> bytearray:
    record = (None, str(number).encode(), (), at.node.ports.clock.wall_ms())
    if producer is None:
        return encode_batch([record])
    return encode_batch(
        [record],
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
        transactional=transactional,
    )


def _read(found: list[list[int]]) -> Callable[[Machine], Awaitable[None]]:
    async def run(at: Machine) -> None:
        found.extend([await _read_partition(at, index) for index in range(PARTITIONS)])

    return run


async def _read_partition(at: Machine, partition: int) -> list[int]:
    hosted = at.node.partitions.get(TOPIC, partition)
    assert hosted is not None
    numbers: list[int] = []
    offset = 0
    while offset < hosted.log.last_stable_offset:
        (fetched,) = await fetch(at.client, {(TOPIC, partition): offset}, max_wait_ms=0, read_committed=True)
        for batch in batches_from(fetched, offset, read_committed=True):
            numbers += (int(bytes(record.value or b"")) for record in batch.records)
        offset = next_offset(fetched, offset)
    return numbers
