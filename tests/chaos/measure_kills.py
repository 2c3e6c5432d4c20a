"""What a producer loses or doubles when the broker's process is killed under load: librdkafka, a real broker, kill -9.

The producer sends unique numbers as fast as it is allowed to, through every restart; what it was told of each is
compared with what the log holds at the end. The transactional one sends an aborted transaction's records again, and
leaves alone those of which it never heard how they ended.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.chaos.reading import PARTITIONS, read_everything
from tests.support.millstream_process import MillstreamProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

UNSAFE = {"enable.idempotence": False, "max.in.flight.requests.per.connection": 5}
KINDS: Mapping[str, Mapping[str, object]] = {
    "acks=0": UNSAFE | {"acks": "0"},
    "acks=1": UNSAFE | {"acks": "1"},
    "acks=all": UNSAFE | {"acks": "all"},
    "idempotence": {"enable.idempotence": True},
    "transactions": {"transactional.id": "measured", "transaction.timeout.ms": 30_000},
}
TRANSACTION_RECORDS = 30
VALUE_BYTES = 100
BETWEEN_KILLS = (300, 1_500)


@dataclass
class Outcome:
    """What became of the records of one kind of producer."""

    kills: int
    sent: int
    acknowledged: int
    lost: int
    doubled: int
    out_of_order: int
    torn: int


@dataclass
class Load:
    """A producer in a thread of its own, and what it was told."""

    bootstrap: str
    topic: str
    kind: str
    acknowledged: list[int] = field(default_factory=list)
    sent: int = 0
    transactions: list[range] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _errors: list[BaseException] = field(default_factory=list)

    def start(self) -> None:
        work = self._write_transactions if self.kind == "transactions" else self._write
        self._thread = threading.Thread(target=self._guarded, args=(work,))
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(240)
        assert not self._thread.is_alive(), "the producer hangs"
        if self._errors:
            raise self._errors[0]

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # told in `stop`
            self._errors.append(error)

    def _producer(self) -> Producer:
        return Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "reconnect.backoff.max.ms": 200,
                # See tests/chaos/workload.py.
                "metadata.recovery.strategy": "none",
                "socket.connection.setup.timeout.ms": 5_000,
                "queue.buffering.max.messages": 2_000,
                "message.timeout.ms": 30_000,
                "linger.ms": 1,
                "log_level": 0,
                "error_cb": lambda _: None,
                **KINDS[self.kind],
            }
        )

    def _send(self, producer: Producer, number: int, on_delivery: Callable[..., None]) -> None:
        value = str(number).ljust(VALUE_BYTES, ".")
        while True:
            try:
                producer.produce(self.topic, value, partition=number % PARTITIONS, on_delivery=on_delivery)
            except BufferError:
                producer.poll(0.01)
                continue
            producer.poll(0)
            return

    def _told(self, number: int) -> Callable[..., None]:
        def note(error: KafkaError | None, _: object) -> None:
            if error is None:
                self.acknowledged.append(number)

        return note

    def _write(self) -> None:
        producer = self._producer()
        while not self._stop.is_set():
            self._send(producer, self.sent, self._told(self.sent))
            self.sent += 1
            if self.sent % 20 == 0:
                # At most ten thousand records a second: enough to have requests under way at every moment.
                time.sleep(0.002)
        producer.flush(60)

    def _write_transactions(self) -> None:
        while not self._stop.is_set():
            # After a fatal error a new producer takes over, as an application's would.
            with contextlib.suppress(KafkaException):
                producer = self._producer()
                producer.init_transactions(60)
                while not self._stop.is_set():
                    numbers = range(self.sent, self.sent + TRANSACTION_RECORDS)
                    self.sent = numbers.stop
                    self.transactions.append(numbers)
                    while not self._commit(producer, numbers):
                        pass

    def _commit(self, producer: Producer, numbers: range) -> bool:
        """Whether the transaction was committed; if not, it was aborted."""
        try:
            producer.begin_transaction()
            for number in numbers:
                self._send(producer, number, lambda *_: None)
            producer.commit_transaction(60)
        except KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(60)
            return False
        self.acknowledged.extend(numbers)
        return True


def measure(kind: str, folder: Path, *, kills: int, seed: int) -> Outcome:
    """Kill the broker so many times under this kind of producer; then count."""
    random = Random(seed)
    topic = "measured"
    with MillstreamProcess(folder) as broker:
        broker.start()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(30)
        load = Load(broker.bootstrap_servers, topic, kind)
        load.start()
        try:
            for _ in range(kills):
                enough = len(load.acknowledged) + random.randint(*BETWEEN_KILLS)
                wait_until(lambda: len(load.acknowledged) >= enough, "acknowledgements", within_s=120, every_s=0.0005)  # noqa: B023
                broker.kill()
                broker.start()
        finally:
            load.stop()
        found = read_everything(broker.bootstrap_servers, topic, committed=True)
        broker.stop()
    places = [[int(value.rstrip(".")) for _, value in records] for records in found.values()]
    return _judged(load, places, kills)


def _judged(load: Load, places: list[list[int]], kills: int) -> Outcome:
    counted = Counter(number for numbers in places for number in numbers)
    acknowledged = set(load.acknowledged)
    torn = sum(1 for numbers in load.transactions if 0 < sum(number in counted for number in numbers) < len(numbers))
    return Outcome(
        kills=kills,
        sent=load.sent,
        acknowledged=len(acknowledged),
        lost=sum(1 for number in acknowledged if number not in counted),
        doubled=sum(count - 1 for count in counted.values()),
        out_of_order=sum(_after_a_later_one(numbers) for numbers in places),
        torn=torn,
    )


def _after_a_later_one(numbers: list[int]) -> int:
    """How many stand, for the first time, behind one that was sent after them."""
    seen: set[int] = set()
    highest = -1
    count = 0
    for number in numbers:
        count += number not in seen and number < highest
        seen.add(number)
        highest = max(highest, number)
    return count
