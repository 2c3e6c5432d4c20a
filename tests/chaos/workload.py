"""Clients that work while the broker is being killed, and write down everything they did and saw.

Writers send unique values with an idempotent producer; copiers move them to a second topic, exactly once (transactions,
offsets in the same transaction, some aborted on purpose); readers consume the copies in a group. All are librdkafka's,
each in a thread of its own, and go on through every restart. `judged` reads everything in the end and says what cannot
have happened.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import traceback
import zlib
from collections import Counter
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from millstream.testing.checking import check
from millstream.testing.history import Committed, History, Outcome, Polled, Sent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

INPUT, OUTPUT = "chaos-input", "chaos-output"
PARTITIONS = 3
# Errors after which the record surely was not written.
REFUSED = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.TOPIC_AUTHORIZATION_FAILED}
# Nobody may be told that of batches which librdkafka has made.
DAMAGED = {KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD}
# A leader that is cut off from its followers waits so long before it says that it cannot acknowledge.
PRODUCER_PATIENCE: Mapping[str, object] = {"request.timeout.ms": 5_000}
CLASSIC: Mapping[str, object] = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}


class Workload:
    """All clients of one run."""

    def __init__(
        self,
        bootstrap: str,
        *,
        options: Mapping[str, object] | None = None,
        readers: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        """`options` are for every client, `readers` what each of them has beside."""
        self.bootstrap = bootstrap
        self.history = History()
        self.acked = 0
        self.acked_in: Counter[tuple[str, int]] = Counter()
        self.copied = 0
        self.read: Counter[str] = Counter()
        self._options = dict(options or {})
        self._readers = dict(readers or {"r0": CLASSIC})
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._guarded, args=(work, name), name=name, daemon=True)
            for work, name in [
                (self._write, "w0"),
                (self._copy, "c0"),
                (self._copy, "c1"),
                *((self._read, name) for name in self._readers),
            ]
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def standing(self) -> str:
        """What each client does at the moment, for whoever has to find out why nothing goes on."""
        return "\n".join(f"{thread.name}: {_where(thread)}" for thread in self._threads)

    def give_up(self) -> None:
        """The run has failed: nobody waits for the clients any more."""
        self._stop.set()

    def stop(self) -> None:
        self._stop.set()
        deadline_s = time.monotonic() + 120
        for thread in self._threads:
            thread.join(max(deadline_s - time.monotonic(), 0.1))
        hanging = [thread for thread in self._threads if thread.is_alive()]
        assert not hanging, f"{[thread.name for thread in hanging]} hang:\n{self.standing()}"
        if self._errors:
            raise self._errors[0]

    def _guarded(self, work: Callable[[str], None], name: str) -> None:
        try:
            work(name)
        except BaseException as error:  # noqa: BLE001  # told in `stop`
            self._errors.append(error)

    def _config(self, **more: object) -> dict[str, object]:
        return {
            "bootstrap.servers": self.bootstrap,
            "reconnect.backoff.max.ms": 200,
            # With every broker down (there is one) librdkafka 2.16 throws its brokers away and starts from the
            # bootstrap list; a TxnOffsetCommit that waits for the old one then waits for ever, on Apache Kafka too.
            "metadata.recovery.strategy": "none",
            "socket.connection.setup.timeout.ms": 5_000,
            "log_level": 0,
            "error_cb": lambda _: None,
            **self._options,
            **more,
        }

    # --- writing

    def _write(self, name: str) -> None:
        producer = Producer(
            self._config(
                **{"enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 60_000, **PRODUCER_PATIENCE}
            )
        )
        number = 0
        while not self._stop.is_set():
            value = f"{name}-{number}"
            place = (INPUT, number % PARTITIONS)
            number += 1
            with contextlib.suppress(BufferError):
                producer.produce(
                    place[0], value.encode(), partition=place[1], on_delivery=self._delivered(value, place)
                )
            producer.poll(0.003)
        producer.flush(60)

    def _delivered(self, value: str, place: tuple[str, int], transaction: str | None = None) -> Callable[..., None]:
        def note(error: KafkaError | None, message: object) -> None:
            if error is None:
                outcome, offset = Outcome.OK, message.offset()  # type: ignore[attr-defined]
                self.acked += 1
                self.acked_in[place] += 1
            else:
                outcome = Outcome.FAILED if error.code() in REFUSED else Outcome.UNKNOWN
                offset = None
                if error.code() in DAMAGED:
                    self._errors.append(AssertionError(f"{value} was damaged on its way to {place}: {error}"))
            with self._lock:
                self.history.sent.append(Sent(value, place, outcome, offset, transaction))

        return note

    # --- copying, exactly once

    def _copy(self, name: str) -> None:
        generation = 0
        while not self._stop.is_set():
            generation += 1
            # A copier that meets a fatal error is replaced, as an application would be.
            with contextlib.suppress(KafkaException):
                self._copy_until_fatal(name, f"{name}.{generation}")

    def _copy_until_fatal(self, name: str, life: str) -> None:
        consumer = Consumer(
            self._config(
                **{
                    "group.id": "copiers",
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    **CLASSIC,
                }
            )
        )
        producer = Producer(
            self._config(
                **{
                    "transactional.id": f"copier-{name}",
                    "transaction.timeout.ms": 30_000,
                    "linger.ms": 1,
                    **PRODUCER_PATIENCE,
                }
            )
        )
        try:
            producer.init_transactions(60)
            consumer.subscribe([INPUT])
            number = 0
            while not self._stop.is_set():
                messages = [m for m in consumer.consume(20, timeout=0.2) if m.error() is None]
                if messages:
                    number += 1
                    self._one_transaction(f"{life}/{number}", consumer, producer, messages)
        finally:
            consumer.close()

    def _one_transaction(
        self, transaction: str, consumer: Consumer, producer: Producer, messages: list[Message]
    ) -> None:
        with self._lock:
            self.history.transactions[transaction] = Outcome.UNKNOWN
        try:
            producer.begin_transaction()
            for message in messages:
                value = f"{transaction}:{message.value().decode()}"
                place = (OUTPUT, message.partition())
                producer.produce(
                    place[0],
                    value.encode(),
                    partition=place[1],
                    on_delivery=self._delivered(value, place, transaction),
                )
            positions = consumer.position(consumer.assignment())
            offsets = [part for part in positions if part.offset >= 0]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
            if zlib.crc32(transaction.encode()) % 10 == 0:
                producer.abort_transaction(60)
                self._ended(transaction, Outcome.FAILED)
                self._rewind(consumer, messages)
                return
            producer.commit_transaction(60)
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(60)
            self._ended(transaction, Outcome.FAILED)
            self._rewind(consumer, messages)
            return
        self._ended(transaction, Outcome.OK)
        self.copied += len(messages)
        with self._lock:
            self.history.committed += [
                Committed("copiers", (part.topic, part.partition), part.offset) for part in offsets
            ]

    def _ended(self, transaction: str, outcome: Outcome) -> None:
        with self._lock:
            self.history.transactions[transaction] = outcome

    @staticmethod
    def _rewind(consumer: Consumer, messages: list[Message]) -> None:
        """An aborted transaction's input is read again."""
        first: dict[tuple[str, int], int] = {}
        for message in messages:
            first.setdefault((message.topic(), message.partition()), message.offset())
        for (topic, partition), offset in first.items():
            with contextlib.suppress(KafkaException):
                consumer.seek(TopicPartition(topic, partition, offset))

    # --- reading

    def _read(self, name: str) -> None:
        fresh: set[tuple[str, int]] = set()
        consumer = Consumer(
            self._config(
                **{
                    "group.id": f"readers-{name}",
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                    **self._readers[name],
                }
            )
        )
        consumer.subscribe([OUTPUT], on_assign=lambda _, parts: fresh.update((p.topic, p.partition) for p in parts))
        while not self._stop.is_set():
            messages = [m for m in consumer.consume(100, timeout=0.2) if m.error() is None]
            if messages:
                records = tuple(((m.topic(), m.partition()), m.offset(), m.value().decode()) for m in messages)
                with self._lock:
                    self.history.polled.append(Polled(name, records, frozenset(fresh)))
                self.read[name] += len(records)
                fresh.clear()
        consumer.close()


def _where(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)) if frame is not None else "nowhere"


def judged(workload: Workload) -> History:
    """Stop everybody, read everything, and fail with whatever cannot have happened."""
    workload.stop()
    history = workload.history
    history.final = {
        **read_everything(workload.bootstrap, INPUT, committed=True),
        **read_everything(workload.bootstrap, OUTPUT, committed=True),
    }
    anomalies = check(history)
    assert not anomalies, f"{len(anomalies)} anomalies:\n" + "\n".join(map(str, anomalies[:20]))
    copies = [value.partition(":")[2] for value in values_of(history, OUTPUT)]
    assert len(copies) == len(set(copies)), "a record was copied twice"
    assert set(copies) <= set(values_of(history, INPUT))
    return history


def values_of(history: History, topic: str) -> list[str]:
    assert history.final is not None
    return [value for place, records in history.final.items() if place[0] == topic for _, value in records]


def read_everything(
    bootstrap: str, topic: str, *, committed: bool
) -> dict[tuple[str, int], tuple[tuple[int, str], ...]]:
    """Every record of the topic, by assignment, up to where it ends for this kind of reader."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "everything",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "enable.partition.eof": True,
        }
    )
    found: dict[tuple[str, int], list[tuple[int, str]]] = {(topic, index): [] for index in range(PARTITIONS)}
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, f"{topic} cannot be read to its end"
        if message.error() is not None:
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ended.add(message.partition())
        else:
            found[topic, message.partition()].append((message.offset(), message.value().decode()))
    consumer.close()
    return {place: tuple(records) for place, records in found.items()}
