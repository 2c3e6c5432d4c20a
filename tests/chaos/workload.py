"""Clients that work while the broker is being killed, and write down everything they did and saw.

Writers send unique values with an idempotent producer; copiers move them to a second topic, exactly once (transactions,
offsets in the same transaction, some aborted on purpose); readers consume the copies in a group. Two exchangers write
to a third topic and read it in the same transactions; one more writer keeps a table in a compacted topic, and one
client asks where partitions end. All are librdkafka's, each in a thread of its own, and go on through every restart.
`judged` reads everything in the end and says what cannot have happened.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
import threading
import time
import traceback
import zlib
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from millstream.testing.checking import check
from millstream.testing.history import Committed, History, Outcome, Polled, Sent
from tests.chaos.reading import (
    PARTITIONS,
    TOMBSTONE,
    ends_of,
    first_offsets,
    read_everything,
    stable_ends,
    stored_offsets,
    value_of,
)
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from millstream.testing.history import Place

INPUT, OUTPUT, EXCHANGE, TABLE = "chaos-input", "chaos-output", "chaos-exchange", "chaos-table"
TOPICS: Mapping[str, Mapping[str, str]] = {
    INPUT: {},
    OUTPUT: {},
    EXCHANGE: {},
    TABLE: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "1000"},
}
"""What has to be there before the clients start, with its configs."""
PLACES: list[Place] = [(topic, index) for topic in TOPICS for index in range(PARTITIONS)]
COPIERS = "copiers"
KEYS, WRITES_OF_A_KEY = 6, 30
ASK_EVERY_S = 0.2
# Errors after which the record surely was not written.
REFUSED = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.TOPIC_AUTHORIZATION_FAILED}
# Nobody may be told that of batches which librdkafka has made.
DAMAGED = {KafkaError.INVALID_MSG, KafkaError.INVALID_RECORD}
# A leader that is cut off from its followers waits so long before it says that it cannot acknowledge.
PRODUCER_PATIENCE: Mapping[str, object] = {"request.timeout.ms": 5_000}
CLASSIC: Mapping[str, object] = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500}


class Workload:
    """All clients of one run."""

    topics: Mapping[str, Mapping[str, str]] = TOPICS

    def __init__(
        self,
        bootstrap: str,
        *,
        options: Mapping[str, object] | None = None,
        readers: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        """`options` are for every client, `readers` what each of them has beside."""
        self.bootstrap = bootstrap
        self.history = History(compacted=frozenset({TABLE}), writes_cross=frozenset({EXCHANGE}))
        self.acked = 0
        self.acked_in: Counter[tuple[str, int]] = Counter()
        self.copied = 0
        self.exchanged = 0
        self.read: Counter[str] = Counter()
        self._options = dict(options or {})
        self._readers = dict(readers or {"r0": CLASSIC})
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._errors: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._guarded, args=(work, name), name=name, daemon=True)
            for work, name in self._clients()
        ]

    def _clients(self) -> list[tuple[Callable[[str], None], str]]:
        """What each client does, and its name."""
        return [
            (self._write, "w0"),
            (self._copy, "c0"),
            (self._copy, "c1"),
            (self._exchange, "x0"),
            (self._exchange, "x1"),
            (self._keep_a_table, "t0"),
            (self._ask_for_ends, "a0"),
            *((self._read, name) for name in self._readers),
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

    def _keep_a_table(self, name: str) -> None:
        """Write a few keys again and again, delete some, go on to others; there is no other writer of them."""
        producer = Producer(
            self._config(
                **{"enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 60_000, **PRODUCER_PATIENCE}
            )
        )
        # A compacted topic refuses records without a key. They go apart, since a batch is refused as a whole.
        without_keys = Producer(self._config(**{"enable.idempotence": False, "acks": "all", **PRODUCER_PATIENCE}))
        dice = Random(name)
        number = 0
        while not self._stop.is_set():
            row = number // WRITES_OF_A_KEY + dice.randrange(KEYS)
            key, value, place = f"{name}/{row}", f"{name}-{number}", (TABLE, row % PARTITIONS)
            deletes = dice.random() < 0.3
            number += 1
            with contextlib.suppress(BufferError):
                producer.produce(
                    place[0],
                    None if deletes else value.encode(),
                    key=key,
                    partition=place[1],
                    headers=[(TOMBSTONE, value.encode())] if deletes else [],
                    on_delivery=self._delivered(value, place, key=key, deletes=deletes),
                )
            producer.poll(0.01)
            if number % 50 == 0:
                value = f"{name}-without-key-{number}"
                noting = self._delivered(value, place, idempotent=False)
                without_keys.produce(place[0], value.encode(), partition=place[1], on_delivery=noting)
                without_keys.poll(0)
        producer.flush(60)
        without_keys.flush(60)

    def _delivered(
        self,
        value: str,
        place: Place,
        transaction: str | None = None,
        *,
        key: str | None = None,
        deletes: bool = False,
        idempotent: bool = True,
    ) -> Callable[..., None]:
        lacks_its_key = place[0] == TABLE and key is None

        def note(error: KafkaError | None, message: object) -> None:
            if error is None:
                outcome, offset = Outcome.OK, message.offset()  # type: ignore[attr-defined]
                self.acked += place[0] in (INPUT, OUTPUT)
                self.acked_in[place] += 1
            else:
                is_refused = error.code() in REFUSED or (lacks_its_key and error.code() == KafkaError.INVALID_RECORD)
                outcome = Outcome.FAILED if is_refused else Outcome.UNKNOWN
                offset = None
                if error.code() in DAMAGED and not is_refused:
                    self._errors.append(AssertionError(f"{value} was damaged on its way to {place}: {error}"))
            with self._lock:
                self.history.sent.append(Sent(value, place, outcome, offset, transaction, idempotent, key, deletes))

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
                    "group.id": COPIERS,
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
                Committed(COPIERS, (part.topic, part.partition), part.offset) for part in offsets
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

    # --- writing and reading in one transaction

    def _exchange(self, name: str) -> None:
        consumer = Consumer(
            self._config(
                **{
                    "group.id": f"exchangers-{name}",
                    "enable.auto.commit": False,
                    "auto.offset.reset": "earliest",
                    "isolation.level": "read_committed",
                }
            )
        )
        consumer.assign([TopicPartition(EXCHANGE, index, 0) for index in range(PARTITIONS)])
        life = 0
        while not self._stop.is_set():
            life += 1
            with contextlib.suppress(KafkaException):
                producer = Producer(
                    self._config(
                        **{
                            "transactional.id": f"exchanger-{name}",
                            "transaction.timeout.ms": 30_000,
                            "linger.ms": 1,
                            **PRODUCER_PATIENCE,
                        }
                    )
                )
                producer.init_transactions(60)
                number = 0
                while not self._stop.is_set():
                    number += 1
                    self._exchange_once(f"{name}.{life}/{number}", name, producer, consumer)
        consumer.close()

    def _exchange_once(self, transaction: str, name: str, producer: Producer, consumer: Consumer) -> None:
        """Two partitions are written; then all that is new is read, which must not be what this transaction wrote."""
        self._ended(transaction, Outcome.UNKNOWN)
        try:
            producer.begin_transaction()
            for step in range(2):
                place = (EXCHANGE, (zlib.crc32(transaction.encode()) + step) % PARTITIONS)
                value = f"{transaction}:{place[1]}"
                noting = self._delivered(value, place, transaction)
                producer.produce(place[0], value.encode(), partition=place[1], on_delivery=noting)
            producer.flush(30)
            messages = [m for m in consumer.consume(100, timeout=0.1) if m.error() is None]
            if messages:
                self._note_poll(name, messages, transaction=transaction)
            if zlib.crc32(transaction.encode()) % 10 == 0:
                producer.abort_transaction(60)
                self._ended(transaction, Outcome.FAILED)
                return
            producer.commit_transaction(60)
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(60)
            self._ended(transaction, Outcome.FAILED)
            return
        self._ended(transaction, Outcome.OK)
        self.exchanged += 1

    # --- reading

    def _note_poll(
        self, name: str, messages: list[Message], *, fresh: Iterable[Place] = (), transaction: str | None = None
    ) -> None:
        records = tuple(((m.topic(), m.partition()), m.offset(), value_of(m)) for m in messages)
        with self._lock:
            self.history.polled.append(Polled(name, records, frozenset(fresh), transaction=transaction))

    def _ask_for_ends(self, _: str) -> None:
        """Where partitions end never goes back, as long as the answer is of the newest leader that is known."""
        admin = AdminClient(self._config())
        while not self._stop.wait(ASK_EVERY_S):
            with contextlib.suppress(KafkaException, concurrent.futures.TimeoutError):
                found = ends_of(admin, PLACES, committed=False)
                with self._lock:
                    for place, (end, epoch) in found.items():
                        if epoch >= self.history.newest_epochs.get(place, -1):
                            self.history.newest_epochs[place] = epoch
                            self.history.ends.append((place, end))

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
                self._note_poll(name, messages, fresh=fresh)
                self.read[name] += len(messages)
                fresh.clear()
        consumer.close()


def _where(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident or 0)
    return "".join(traceback.format_stack(frame)) if frame is not None else "nowhere"


def create_topics(bootstrap: str, *, replicas: int = 1, **configs: str) -> None:
    """All that the clients need; `configs` are for the compacted one, with `_` for a dot."""
    extra = {name.replace("_", "."): value for name, value in configs.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    wanted = [
        NewTopic(name, PARTITIONS, replicas, config=dict(config) | (extra if name == TABLE else {}))
        for name, config in TOPICS.items()
    ]
    for future in admin.create_topics(wanted).values():
        future.result(90)


def progress(workload: Workload, *, acked: int, copied: int, exchanged: int = 0) -> None:
    """Wait until that much more was written, copied and exchanged."""
    acked += workload.acked
    copied += workload.copied
    exchanged += workload.exchanged
    try:
        wait_until(
            lambda: workload.acked >= acked and workload.copied >= copied and workload.exchanged >= exchanged,
            "clients to get on",
            within_s=240,
        )
    except TimeoutError as error:
        standing = (workload.acked, acked), (workload.copied, copied), (workload.exchanged, exchanged)
        raise TimeoutError(f"{error}: written, copied, exchanged {standing}\n{workload.standing()}") from None


def until_compacted(bootstrap: str) -> None:
    """Wait until the table has lost what was replaced."""
    wait_until(lambda: max(first_offsets(bootstrap, TABLE)) > 0, "a compaction", within_s=60, every_s=0.5)


def judged(workload: Workload) -> History:
    """Stop all clients, read everything, and fail with whatever cannot have happened."""
    history = gathered(workload)
    anomalies = check(history)
    assert not anomalies, f"{len(anomalies)} anomalies:\n" + "\n".join(map(str, anomalies[:20]))
    copies = [value.partition(":")[2] for value in values_of(history, OUTPUT)]
    assert len(copies) == len(set(copies)), "a record was copied twice"
    assert set(copies) <= set(values_of(history, INPUT))
    return history


def gathered(workload: Workload) -> History:
    """Stop all clients and read everything: the whole history, not judged yet."""
    workload.stop()
    history, bootstrap = workload.history, workload.bootstrap
    history.stable_ends = stable_ends(bootstrap, PLACES)
    history.final = {
        place: records
        for topic in TOPICS
        for place, records in read_everything(bootstrap, topic, committed=True).items()
    }
    stored = stored_offsets(bootstrap, COPIERS, dict.fromkeys(commit.place for commit in history.committed))
    history.committed += [Committed(COPIERS, place, offset) for place, offset in stored.items()]
    return history


def values_of(history: History, topic: str) -> list[str]:
    assert history.final is not None
    return [value for place, records in history.final.items() if place[0] == topic for _, value in records]


def must_be_fed(history: History) -> None:
    """Every rule of the checker that librdkafka's clients can feed had something to judge.

    They do not say in which generation they own a partition: TWO_OWNERS is fed by the simulator alone.
    """
    assert history.final is not None
    writer = {sent.value: sent.transaction for sent in history.sent}
    reads = {
        (writer.get(value), poll.transaction)
        for poll in history.polled
        if poll.transaction
        for *_, value in poll.records
    }
    assert any(one is not None and one != other for one, other in reads), "no transaction read what another committed"
    assert any(sent.outcome is Outcome.FAILED and sent.transaction is None for sent in history.sent)
    assert {Outcome.OK, Outcome.FAILED} <= set(history.transactions.values())
    assert set(history.stable_ends) == set(PLACES)
    assert {place for place, _ in history.ends} == set(PLACES)
    assert history.committed
    keyed = [sent for sent in history.sent if sent.key is not None and sent.outcome is Outcome.OK]
    standing = set(values_of(history, TABLE))
    gone = [sent for sent in keyed if sent.value not in standing]
    assert any(not sent.deletes for sent in gone), "nothing was compacted"
    assert any(sent.deletes for sent in keyed)
