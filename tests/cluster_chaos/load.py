"""More clients at once than `Workload` has, and no record of them that is not accounted for in the end.

Eight transactional producers (every third transaction is aborted) and ten idempotent ones write to the same partitions.
Two groups of two copiers each, one group of either protocol, copy what is committed to a topic of their own, exactly
once (consume, produce, send_offsets_to_transaction). So the end is known to the last record: each partition of a copy
holds the values of the input's partition, in their order, and nothing else. Whatever was lost, doubled, reordered,
or read although it was aborted, is a difference.

What seeds and chaos with one writer did not find, this did: transactions of many producers are open in each partition
at any time, and groups commit into them.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec

from millstream.testing.checking import check
from millstream.testing.history import History, Outcome
from tests.chaos.reading import PARTITIONS, read_everything
from tests.chaos.workload import CLASSIC, INPUT, PRODUCER_PATIENCE, Workload, values_of
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

TRANSACTIONAL, IDEMPOTENT, COPIERS = 8, 10, 2
PROTOCOLS: dict[str, Mapping[str, object]] = {"classic": CLASSIC, "consumer": {"group.protocol": "consumer"}}
COPIES = tuple(f"chaos-copy-{protocol}" for protocol in PROTOCOLS)
TOPICS: Mapping[str, Mapping[str, str]] = {topic: {} for topic in (INPUT, *COPIES)}
TRANSACTION_RECORDS = 8
COPIED_AT_ONCE = 50
# Who writes waits for who copies, or the end of a run would be spent on copying.
AHEAD_MAX = 2_000
WAIT_FOR_COPIERS_S = 1.0
PAUSE_S = 0.02
END_S = 180.0
LOOKING_FOR_COORDINATOR = {
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
}
# Shows why a copier stands still: e.g. cgrp,consumer,topic,fetch,eos, on standard error.
COPIER_DEBUG = {"debug": debug, "log_level": 7} if (debug := os.environ.get("MILLSTREAM_COPIER_DEBUG")) else {}


class Load(Workload):
    """See the module's docstring."""

    topics: Mapping[str, Mapping[str, str]] = TOPICS

    def __init__(self, bootstrap: str, *, options: Mapping[str, object] | None = None) -> None:
        self._copied: Counter[str] = Counter()
        self._to_copy = 0
        self._written = threading.Event()
        super().__init__(bootstrap, options=options)
        # Many transactions write to one partition at the same time: which of them is first says nothing.
        self.history.writes_cross = frozenset({INPUT})

    def _clients(self) -> list[tuple[Callable[[str], None], str]]:
        return [
            *((self._write_in_transactions, f"t{number}") for number in range(TRANSACTIONAL)),
            *((self._write, f"i{number}") for number in range(IDEMPOTENT)),
            *((self._copy, f"{protocol}-{number}") for protocol in PROTOCOLS for number in range(COPIERS)),
        ]

    @property
    def copied(self) -> int:
        """By the slower group."""
        return min(self._copied[protocol] for protocol in PROTOCOLS)

    @copied.setter
    def copied(self, _: int) -> None:
        """`Workload` starts to count here; copies are counted for each group."""

    def _written_and_copied(self, count: int) -> None:
        """So much more is there to be copied; goes on when the copiers are not too far behind, or after a while.

        Copiers may stand still until a dead coordinator is back (librdkafka waits for the one that it knew). Producers
        have to get on meanwhile: that is what a fault waits for before it is mended.
        """
        with self._lock:
            self._to_copy += count
        deadline_s = time.monotonic() + WAIT_FOR_COPIERS_S
        while self._to_copy - self.copied > AHEAD_MAX and time.monotonic() < deadline_s:
            if self._written.wait(PAUSE_S):
                return

    # --- writing

    def _write(self, name: str) -> None:
        producer = Producer(
            self._config(
                **{"enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 120_000, **PRODUCER_PATIENCE}
            )
        )
        number = 0
        while not self._written.is_set():
            place = (INPUT, number % PARTITIONS)
            value = f"{name}:{number}"
            producer.produce(place[0], value.encode(), partition=place[1], on_delivery=self._delivered(value, place))
            number += 1
            producer.poll(PAUSE_S)
            self._written_and_copied(1)
        assert producer.flush(120) == 0, f"{name} has records that were neither written nor refused"

    def _write_in_transactions(self, name: str) -> None:
        number = 0
        while not self._written.is_set():
            # A producer that meets a fatal error is replaced, as an application's would be.
            with contextlib.suppress(KafkaException):
                producer = Producer(
                    self._config(
                        **{
                            "transactional.id": f"load-{name}",
                            "transaction.timeout.ms": 30_000,
                            "linger.ms": 1,
                            **PRODUCER_PATIENCE,
                        }
                    )
                )
                producer.init_transactions(60)
                while not self._written.is_set():
                    number += 1
                    outcome = self._write_one(producer, name, number)
                    self._written_and_copied(TRANSACTION_RECORDS if outcome is Outcome.OK else 0)
                    producer.poll(PAUSE_S)

    def _write_one(self, producer: Producer, name: str, number: int) -> Outcome:
        transaction = f"{name}/{number}"
        self._ended(transaction, Outcome.UNKNOWN)

        def work() -> None:
            for index in range(TRANSACTION_RECORDS):
                value = f"{name}:{number * TRANSACTION_RECORDS + index}"
                place = (INPUT, index % PARTITIONS)
                note = self._delivered(value, place, transaction)
                producer.produce(place[0], value.encode(), partition=place[1], on_delivery=note)
            # What is aborted before it was sent would never stand in the log.
            producer.flush(30)

        outcome = _in_transaction(producer, work, commit=number % 3 != 0)
        self._ended(transaction, outcome)
        return outcome

    # --- copying

    def _copy_until_fatal(self, name: str, life: str) -> None:
        Copier(self, name, life).run()

    def _copied_by(self, protocol: str, count: int) -> None:
        with self._lock:
            self._copied[protocol] += count

    # --- the end

    def stop(self) -> None:
        """Producers first; copiers once they have read everything that is committed."""
        self._written.set()
        deadline_s = time.monotonic() + END_S
        for thread in self._threads:
            if not thread.name.startswith(tuple(PROTOCOLS)):
                thread.join(max(deadline_s - time.monotonic(), 0.1))
        if not self._errors:
            self._until_stable()
            final = read_everything(self.bootstrap, INPUT, committed=True)
            ends = {place[1]: records[-1][0] + 1 for place, records in final.items() if records}
            for protocol in PROTOCOLS:
                self._until_copied(protocol, ends)
        super().stop()

    def give_up(self) -> None:
        self._written.set()
        super().give_up()

    def _until_stable(self) -> None:
        """A transaction whose producer ended in the middle of it is aborted by its coordinator, after its timeout."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        asked = {TopicPartition(INPUT, partition): OffsetSpec.latest() for partition in range(PARTITIONS)}

        def ends(level: IsolationLevel) -> list[int]:
            found = admin.list_offsets(asked, isolation_level=level)
            return [found[part].result(30).offset for part in asked]

        def is_stable() -> bool:
            return ends(IsolationLevel.READ_COMMITTED) == ends(IsolationLevel.READ_UNCOMMITTED)

        wait_until(is_stable, "all transactions to end", within_s=END_S, every_s=0.2)

    def _until_copied(self, protocol: str, ends: Mapping[int, int]) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        asked = ConsumerGroupTopicPartitions(f"copiers-{protocol}")
        offsets: dict[int, int] = {}

        def arrived() -> bool:
            with contextlib.suppress(KafkaException):
                found = admin.list_consumer_group_offsets([asked])[asked.group_id].result(30)
                offsets.update({part.partition: part.offset for part in found.topic_partitions})
            return all(offsets.get(partition, -1) >= end for partition, end in ends.items())

        try:
            wait_until(arrived, f"group copiers-{protocol} to copy everything", within_s=END_S, every_s=0.1)
        except TimeoutError as late:
            raise TimeoutError(f"{late}: it is at {offsets} of {ends}\n{self.standing()}") from None


class Copier:
    """One life of a member of a group of copiers, until something fatal happens to it."""

    def __init__(self, load: Load, name: str, life: str) -> None:
        self._load = load
        self._life = life
        self._protocol = name.rpartition("-")[0]
        self._topic = f"chaos-copy-{self._protocol}"
        self._batch: list[Message] = []
        self._consumer = Consumer(
            load._config(
                **{
                    "group.id": f"copiers-{self._protocol}",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "client.id": name,
                    **COPIER_DEBUG,
                    **PROTOCOLS[self._protocol],
                }
            )
        )
        self._producer = Producer(
            load._config(
                **{
                    "transactional.id": f"copier-{name}",
                    "client.id": f"{name}-out",
                    **COPIER_DEBUG,
                    "transaction.timeout.ms": 30_000,
                    "linger.ms": 1,
                    **PRODUCER_PATIENCE,
                }
            )
        )

    def run(self) -> None:
        try:
            self._producer.init_transactions(60)
            # With callbacks rebalances happen inside `poll` alone: between two polls everything read is still ours.
            self._consumer.subscribe(
                [INPUT], on_assign=lambda *_: None, on_revoke=self._taken_away, on_lost=self._taken_away
            )
            number = 0
            while not self._load._stop.is_set():
                self._read()
                if self._batch:
                    number += 1
                    self._write(number)
        finally:
            self._consumer.close()

    def _taken_away(self, _: Consumer, parts: list[TopicPartition]) -> None:
        lost = {part.partition for part in parts}
        self._batch = [message for message in self._batch if message.partition() not in lost]

    def _read(self) -> None:
        self._batch = []
        deadline_s = time.monotonic() + 0.2
        while len(self._batch) < COPIED_AT_ONCE and time.monotonic() < deadline_s:
            message = self._consumer.poll(0.02)
            if message is not None and message.error() is None:
                self._batch.append(message)
            elif message is not None and message.error().code() == KafkaError.NOT_COORDINATOR:
                self._assign_again()

    def _assign_again(self) -> None:
        """Let the group's offsets be fetched again: a coordinator that has moved has refused to say them.

        librdkafka 2.16 does not do so itself and reads nothing any more (confluentinc/librdkafka#5586). Partitions that
        are assigned anew are asked for anew.
        """
        mine = [TopicPartition(part.topic, part.partition) for part in self._consumer.assignment()]
        self._batch = []
        if self._protocol == "consumer":
            self._consumer.incremental_unassign(mine)
            self._consumer.incremental_assign(mine)
        else:
            self._consumer.assign(mine)

    def _write(self, number: int) -> None:
        ends: dict[int, int] = {}

        def work() -> None:
            for message in self._batch:
                ends[message.partition()] = message.offset() + 1
                self._producer.produce(self._topic, message.value(), partition=message.partition())
            offsets = [TopicPartition(INPUT, partition, offset) for partition, offset in ends.items()]
            self._producer.send_offsets_to_transaction(offsets, self._consumer.consumer_group_metadata(), 30)

        if _in_transaction(self._producer, work, commit=number % 10 != 0) is Outcome.OK:
            self._load._copied_by(self._protocol, len(self._batch))
        else:
            self._rewind()

    def _rewind(self) -> None:
        """What was aborted is read again, from where the group is by now."""
        offsets: list[TopicPartition] = []
        wait_until(lambda: self._has_committed(offsets), "the group's offsets", within_s=END_S, every_s=0.2)
        for part in offsets:
            self._consumer.seek(TopicPartition(part.topic, part.partition, max(part.offset, 0)))

    def _has_committed(self, offsets: list[TopicPartition]) -> bool:
        """Whether the coordinator has said what the group has committed.

        A copier that gave up here would be replaced. librdkafka says once that its member leaves; where the coordinator
        has just moved that is refused, and the group waits for a member that is gone until its session ends (45 s).
        """
        try:
            offsets[:] = self._consumer.committed(self._consumer.assignment(), 30)
        except KafkaException as problem:
            if not problem.args[0].retriable() and problem.args[0].code() not in LOOKING_FOR_COORDINATOR:
                raise
            return False
        return True


def _in_transaction(producer: Producer, work: Callable[[], None], *, commit: bool) -> Outcome:
    """How it ended; raises what only another producer can mend."""
    try:
        producer.begin_transaction()
        work()
        _patiently(producer.commit_transaction if commit else producer.abort_transaction)
    except KafkaException as problem:
        if not problem.args[0].txn_requires_abort():
            raise
        _patiently(producer.abort_transaction)
        return Outcome.FAILED
    return Outcome.OK if commit else Outcome.FAILED


def _patiently(end: Callable[[float], None]) -> None:
    """A transaction's end that takes longer than expected is asked for again, as librdkafka wishes it."""
    for _ in range(4):
        try:
            return end(30)
        except KafkaException as problem:
            if not problem.args[0].retriable():
                raise
    return end(30)


def load_judged(load: Load) -> History:
    """Stop everybody, read everything, and fail with whatever is not as it has to be."""
    load.stop()
    history = load.history
    history.final = read_everything(load.bootstrap, INPUT, committed=True)
    anomalies = check(history)
    assert not anomalies, f"{len(anomalies)} anomalies:\n" + "\n".join(map(str, anomalies[:20]))
    for (_, partition), records in history.final.items():
        in_order(f"{INPUT}-{partition}", [value for _, value in records])
    for topic in COPIES:
        copies = read_everything(load.bootstrap, topic, committed=True)
        for (_, partition), copied in copies.items():
            source = [value for _, value in history.final[INPUT, partition]]
            same(f"{topic}-{partition}", [value for _, value in copied], source)
        history.final |= copies
    assert values_of(history, INPUT), "nothing was written"
    return history


def in_order(where: str, values: list[str]) -> None:
    """The records of each producer stand in the order in which it sent them."""
    last: dict[str, int] = {}
    for value in values:
        producer, _, number = value.partition(":")
        assert int(number) > last.get(producer, -1), f"{where}: {value} stands behind {producer}:{last[producer]}"
        last[producer] = int(number)


def same(where: str, copied: list[str], source: list[str]) -> None:
    """The copy is the source, record by record."""
    if copied == source:
        return
    doubled = [value for value, count in Counter(copied).items() if count > 1]
    lost, invented = sorted(set(source) - set(copied)), sorted(set(copied) - set(source))
    first = next((at for at, (one, other) in enumerate(zip(copied, source, strict=False)) if one != other), len(source))
    raise AssertionError(
        f"{where} is no copy: {len(copied)} of {len(source)} records, the first difference at record {first}; "
        f"lost {lost[:10]}, doubled {doubled[:10]}, invented {invented[:10]}"
    )
