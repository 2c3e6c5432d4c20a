"""Transactions on the real broker with virtual time and a lossy disk, crashed after every write, fsync and rename.

Each transaction writes one record to every partition and an offset of a group. Whatever step was the last: after the
restart each transaction is seen whole or not at all, as its producer was told if it was told anything, and the next
owner of the transactional id finds nothing that hangs.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.client import CoordinatorKind, CoordinatorOf, LeaderOf
from millstream.client.errors import ClientError, Refusal
from millstream.client.fetch import fetch
from millstream.client.reading import batches_from, next_offset
from millstream.protocol.errors import ErrorCode
from millstream.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from millstream.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from millstream.protocol.messages.end_txn import EndTxnRequest
from millstream.protocol.messages.init_producer_id import InitProducerIdRequest
from millstream.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millstream.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from millstream.records.building import encode_batch
from millstream.testing.machine import Machine
from tests.sim.seeds import fresh_seeds, how_to_replay, kept_seeds, name_of

if TYPE_CHECKING:
    from tests.sim.conftest import Tried

PARTITIONS = 3
TRANSACTIONS = 2
TOPIC, GROUP, ID = "orders", "group", "copier"
AT_COORDINATOR = CoordinatorOf(ID, CoordinatorKind.TRANSACTION)


@dataclass
class History:
    """What the producer did and was told; `None` where it never heard how a transaction ended."""

    told: dict[int, bool | None] = field(default_factory=dict)
    topic_exists: bool = False
    producer_ids: list[int] = field(default_factory=list)


class Copier:
    """A transactional producer, as a client of transaction.version 2 or of the time before."""

    def __init__(self, at: Machine, version: int) -> None:
        self._at = at
        self._bumps = version >= 2
        self.producer = (-1, -1)
        self._sequence = 0

    async def start(self) -> None:
        async def attempt() -> tuple[int, int]:
            answer = await self._at.client.call(
                InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000), node=AT_COORDINATOR
            )
            _refuse(answer.error_code)
            return answer.producer_id, answer.producer_epoch

        self.producer = await self._at.client.retrying(attempt)

    async def _add_partitions(self) -> None:
        added = await self._at.client.call(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=ID,
                v3_and_below_producer_id=self.producer[0],
                v3_and_below_producer_epoch=self.producer[1],
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(PARTITIONS)))],
            ),
            node=AT_COORDINATOR,
            at_most=3,
        )
        for result in added.results_by_topic_v3_and_below[0].results_by_partition:
            _refuse(result.partition_error_code)

    async def write(self, number: int) -> None:
        if not self._bumps:
            # The markers of the last transaction may still be on their way to the disk.
            await self._at.client.retrying(self._add_partitions)
        for partition in range(PARTITIONS):
            await self._produce(number, partition)
        self._sequence += 1

    async def _produce(self, number: int, partition: int) -> None:
        records = encode_batch(
            [(b"key", str(number).encode(), (), self._at.node.ports.clock.wall_ms())],
            producer_id=self.producer[0],
            producer_epoch=self.producer[1],
            base_sequence=self._sequence,
            transactional=True,
        )
        data = TopicProduceData(
            name=TOPIC, partition_data=[PartitionProduceData(index=partition, records=bytes(records))]
        )
        answer = await self._at.client.call(
            ProduceRequest(transactional_id=ID, acks=-1, timeout_ms=5_000, topic_data=[data]),
            node=LeaderOf(TOPIC, partition),
            at_most=12 if self._bumps else 11,
        )
        _refuse(answer.responses[0].partition_responses[0].error_code)

    async def send_offset(self, offset: int) -> None:
        producer_id, epoch = self.producer
        if not self._bumps:
            added = await self._at.client.call(
                AddOffsetsToTxnRequest(
                    transactional_id=ID, producer_id=producer_id, producer_epoch=epoch, group_id=GROUP
                ),
                node=AT_COORDINATOR,
            )
            _refuse(added.error_code)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=None)
        answer = await self._at.client.call(
            TxnOffsetCommitRequest(
                transactional_id=ID,
                group_id=GROUP,
                producer_id=producer_id,
                producer_epoch=epoch,
                topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
            ),
            node=CoordinatorOf(GROUP),
            at_most=5 if self._bumps else 4,
        )
        _refuse(answer.topics[0].partitions[0].error_code)

    async def end(self, *, commit: bool) -> None:
        answer = await self._at.client.call(
            EndTxnRequest(
                transactional_id=ID,
                producer_id=self.producer[0],
                producer_epoch=self.producer[1],
                committed=commit,
            ),
            node=AT_COORDINATOR,
            at_most=5 if self._bumps else 4,
        )
        _refuse(answer.error_code)
        if self._bumps:
            self.producer = (answer.producer_id, answer.producer_epoch)
            self._sequence = 0


def _refuse(code: int) -> None:
    if code:
        raise Refusal(ErrorCode(code))


def machine(seed: int, *, fsync: bool) -> Machine:
    return Machine(
        seed=seed,
        settings={
            "millstream.acks.fsync": "true" if fsync else "false",
            "offsets.topic.num.partitions": "2",
            "transaction.state.log.num.partitions": "2",
        },
    )


def work(history: History, version: int) -> Any:
    async def run(at: Machine) -> None:
        made = await create_topics(at.client, [NewTopic(TOPIC, PARTITIONS, 1, {})])
        assert not isinstance(made[TOPIC], Refusal), made
        history.topic_exists = True
        copier = Copier(at, version)
        await copier.start()
        history.producer_ids += [copier.producer[0], await new_producer_id(at)]
        for number in range(TRANSACTIONS):
            history.told[number] = None
            await copier.write(number)
            await copier.send_offset(number + 1)
            commit = number % 2 == 0
            await copier.end(commit=commit)
            history.told[number] = commit

    return run


def check(history: History, version: int) -> Any:
    async def run(at: Machine) -> None:
        if not history.topic_exists:
            return
        copier = Copier(at, version)
        await copier.start()
        seen = [await committed_values(at, partition) for partition in range(PARTITIONS)]
        assert seen[0] == seen[1] == seen[2], f"a torn transaction: {seen}"
        for number, told in history.told.items():
            if told is not None:
                assert (number in seen[0]) == told, f"transaction {number} ended otherwise than told: {seen[0]}"
        assert await committed_offset(at) == (seen[0][-1] + 1 if seen[0] else -1), f"offsets disagree with {seen[0]}"
        assert await new_producer_id(at) not in history.producer_ids, "a producer id was given twice (KAFKA-15552)"
        # The id goes on.
        await copier.write(99)
        await copier.end(commit=True)
        assert (await committed_values(at, 0))[-1] == 99

    return run


async def new_producer_id(at: Machine) -> int:
    """For an idempotent producer."""
    answer = await at.client.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0))
    _refuse(answer.error_code)
    found: int = answer.producer_id
    return found


async def committed_values(at: Machine, partition: int) -> list[int]:
    """What a reader of committed records sees, to the end; nothing may hang before it."""
    hosted = at.node.partitions.get(TOPIC, partition)
    assert hosted is not None
    for _ in range(100):
        if hosted.log.last_stable_offset == hosted.log.end_offset:
            break
        await asyncio.sleep(0.05)  # virtual time; markers are on their way to the disk
    assert hosted.log.last_stable_offset == hosted.log.end_offset, "a transaction hangs"
    values: list[int] = []
    offset = 0
    while offset < hosted.log.last_stable_offset:
        (fetched,) = await fetch(at.client, {(TOPIC, partition): offset}, max_wait_ms=0, read_committed=True)
        for batch in batches_from(fetched, offset, read_committed=True):
            values += (int(bytes(record.value or b"")) for record in batch.records)
        offset = next_offset(fetched, offset)
    return values


async def committed_offset(at: Machine) -> int:
    group = OffsetFetchRequestGroup(
        group_id=GROUP, topics=[OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])]
    )

    async def attempt() -> int:
        answer = await at.client.call(
            OffsetFetchRequest(groups=[group], require_stable=True),
            node=CoordinatorOf(GROUP),
            at_least=8,
            at_most=9,
        )
        _refuse(answer.groups[0].error_code)
        partition = answer.groups[0].topics[0].partitions[0]
        _refuse(partition.error_code)
        found: int = partition.committed_offset
        return found

    return await at.client.retrying(attempt)


def crash_at_every_step(tried: Tried, *, version: int, fsync: bool, lose_unsynced: bool) -> None:
    whole = machine(seed=1, fsync=fsync)
    history = History()
    whole.run(work(history, version))
    assert list(history.told.values()) == [True, False]
    whole.run(check(history, version))
    first = steps_before_transactions(fsync=fsync)
    fresh = fresh_seeds(1)
    numbers = {"version": version, "fsync": int(fsync)}
    seeds = [*kept_seeds("transaction-crash", **numbers), *fresh]
    for seed, step in itertools.product(seeds, range(first, whole.disk.steps + 1)):
        crashing = machine(seed=seed, fsync=fsync)
        history = History()
        crashing.disk.power_off_at = step
        try:
            crashing.run(work(history, version))
            crashing.disk.crash(keep_unsynced=not lose_unsynced)
            crashing.run(check(history, version))
        except (AssertionError, ClientError, OSError) as error:
            at = f"step {step} ({crashing.disk.last_step}), fsync={fsync}"
            again = how_to_replay("transaction-crash", "tests/sim/test_transaction_crash.py", seed, **numbers)
            raise AssertionError(f"crash at {at}: {error}\n{again}") from error
    tried("a crash in the middle of transactions", len(seeds), name_of(fresh))


def steps_before_transactions(*, fsync: bool) -> int:
    """A crash before is test_one_node_crash.py's."""

    async def only_start(at: Machine) -> None:
        pass

    booted = machine(seed=1, fsync=fsync)
    booted.run(only_start, stop_cleanly=False)
    return booted.disk.steps


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 2])
def test_a_killed_process_leaves_transactions_whole_whatever_step_is_its_last(version: int, tried: Tried) -> None:
    crash_at_every_step(tried, version=version, fsync=False, lose_unsynced=False)


@pytest.mark.slow
@pytest.mark.parametrize("version", [0, 2])
def test_with_fsync_a_power_failure_leaves_transactions_whole_whatever_step_is_the_last(
    version: int, tried: Tried
) -> None:
    crash_at_every_step(tried, version=version, fsync=True, lose_unsynced=True)
