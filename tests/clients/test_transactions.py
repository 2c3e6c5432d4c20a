"""Transactions through librdkafka: what a reader of committed records sees, who is fenced, what a kill leaves.

Every claim holds for Apache Kafka too (`--against both`).
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from confluent_kafka import Message

    from tests.clients.reference import Reference
    from tests.support.millstream_process import MillstreamProcess
    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients]

PARTITIONS = 4
PATIENCE_S = 90


def producer(broker: RunningBroker, transactional_id: str, **options: object) -> Producer:
    made = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": transactional_id,
            "partitioner": "murmur2_random",
            "log_level": 0,
            **options,
        }
    )
    made.init_transactions(PATIENCE_S)
    return made


def write(made: Producer, topic: str, value: str, partition: int = 0) -> None:
    made.produce(topic, value.encode(), partition=partition)
    assert made.flush(PATIENCE_S) == 0


def transaction(made: Producer, topic: str, *values: str, commit: bool = True) -> None:
    """One value to each partition in turn."""
    made.begin_transaction()
    for partition, value in enumerate(values):
        write(made, topic, value, partition)
    if commit:
        made.commit_transaction(PATIENCE_S)
    else:
        made.abort_transaction(PATIENCE_S)


def read_to_end(broker: RunningBroker, topic: str, isolation: str = "read_committed") -> list[str]:
    """Everything from the first offset up to where a reader of this isolation may look."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"reader-of-{topic}",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    try:
        partitions = list(consumer.list_topics(topic, PATIENCE_S).topics[topic].partitions)
        consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
        return [_text(message) for message in _until_every_end(consumer, len(partitions))]
    finally:
        consumer.close()


def _until_every_end(consumer: Consumer, partitions: int) -> Iterator[Message]:
    ended: dict[int, None] = {}
    while len(ended) < partitions:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "the reader stands still"
        error = message.error()
        if error is None:
            yield message
        else:
            assert error.code() == KafkaError._PARTITION_EOF
            ended[message.partition()] = None


def _text(message: Message) -> str:
    value = message.value()
    assert value is not None
    return value.decode()


@pytest.fixture
def wide(reference: Reference, fresh_name: str) -> str:
    """A topic of several partitions."""
    reference.create_topic(fresh_name, partitions=PARTITIONS)
    return fresh_name


def test_committed_records_are_read_and_aborted_ones_are_not(broker: RunningBroker, topic: str) -> None:
    made = producer(broker, topic)
    transaction(made, topic, "a")
    transaction(made, topic, "b", commit=False)
    transaction(made, topic, "c")
    assert read_to_end(broker, topic) == ["a", "c"]
    assert read_to_end(broker, topic, "read_uncommitted") == ["a", "b", "c"]


def test_aborted_transactions_that_overlap_are_left_out_one_by_one(broker: RunningBroker, topic: str) -> None:
    makers = [producer(broker, f"{topic}-{number}") for number in range(4)]
    for number, made in enumerate(makers):
        made.begin_transaction()
        write(made, topic, f"first {number}")
    for number, made in enumerate(makers):
        write(made, topic, f"second {number}")
    # They end in another order than they began.
    for number in (2, 0, 3, 1):
        ends = makers[number].commit_transaction if number in (0, 3) else makers[number].abort_transaction
        ends(PATIENCE_S)
    assert read_to_end(broker, topic) == ["first 0", "first 3", "second 0", "second 3"]


def test_a_reader_of_committed_records_waits_before_an_open_transaction(broker: RunningBroker, topic: str) -> None:
    made = producer(broker, topic)
    transaction(made, topic, "before")
    made.begin_transaction()
    write(made, topic, "open")
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    write(plain, topic, "behind it")
    assert read_to_end(broker, topic) == ["before"]
    made.commit_transaction(PATIENCE_S)
    assert read_to_end(broker, topic) == ["before", "open", "behind it"]


def test_a_transaction_over_partitions_is_seen_whole_or_not_at_all(broker: RunningBroker, wide: str) -> None:
    made = producer(broker, wide)
    for number in range(10):
        transaction(made, wide, *[str(number)] * PARTITIONS, commit=number % 3 != 0)
        seen = read_to_end(broker, wide)
        expected = [str(each) for each in range(number + 1) if each % 3 != 0]
        assert sorted(seen) == sorted(expected * PARTITIONS)


def test_a_new_owner_of_the_id_fences_the_old_one(broker: RunningBroker, topic: str) -> None:
    old = producer(broker, topic)
    old.begin_transaction()
    write(old, topic, "of the old one")
    new = producer(broker, topic)
    transaction(new, topic, "of the new one")
    with pytest.raises(KafkaException) as fenced:
        old.commit_transaction(PATIENCE_S)
    assert fenced.value.args[0].fatal()
    assert fenced.value.args[0].code() == KafkaError._FENCED
    transaction(new, topic, "of the new one again")
    assert read_to_end(broker, topic) == ["of the new one", "of the new one again"]


def test_offsets_of_a_group_count_once_the_transaction_commits(broker: RunningBroker, topic: str) -> None:
    made = producer(broker, topic)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "log_level": 0})
    place = TopicPartition(topic, 0)

    def committed() -> int:
        return consumer.committed([place], PATIENCE_S)[0].offset

    def send(offset: int) -> None:
        made.begin_transaction()
        write(made, topic, str(offset))
        made.send_offsets_to_transaction(
            [TopicPartition(topic, 0, offset)], consumer.consumer_group_metadata(), PATIENCE_S
        )

    nothing = committed()
    send(1)
    made.commit_transaction(PATIENCE_S)
    assert (nothing < 0, committed()) == (True, 1)
    send(2)
    made.abort_transaction(PATIENCE_S)
    assert committed() == 1
    send(3)
    made.commit_transaction(PATIENCE_S)
    wait_until(lambda: committed() == 3, "the offset of the last transaction", within_s=PATIENCE_S)
    consumer.close()


def test_an_empty_transaction_ends(broker: RunningBroker, topic: str) -> None:
    made = producer(broker, topic)
    for commit in (True, False):
        transaction(made, topic, commit=commit)
    transaction(made, topic, "at last")
    assert read_to_end(broker, topic) == ["at last"]


def test_many_ids_work_side_by_side(broker: RunningBroker, wide: str) -> None:
    makers = [producer(broker, f"{wide}-{number}") for number in range(12)]
    for made in makers:
        made.begin_transaction()
    for number, made in enumerate(makers):
        for partition in range(PARTITIONS):
            made.produce(wide, str(number).encode(), partition=partition)
    for made in makers:
        made.commit_transaction(PATIENCE_S)
    assert sorted(read_to_end(broker, wide)) == sorted([str(number) for number in range(12)] * PARTITIONS)


def test_the_longest_timeout_is_the_brokers(broker: RunningBroker, topic: str) -> None:
    with pytest.raises(KafkaException) as refused:
        producer(broker, topic, **{"transaction.timeout.ms": 2**31 - 1})
    assert refused.value.args[0].code() == KafkaError.INVALID_TRANSACTION_TIMEOUT


# --- a broker of its own

QUICK = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}


@pytest.fixture
def own(fresh_millstream: Callable[..., MillstreamProcess]) -> MillstreamProcess:
    process = fresh_millstream(settings=QUICK)
    process.start()
    return process


def create(broker: RunningBroker, topic: str, partitions: int = 1) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(PATIENCE_S)


def test_a_transaction_that_takes_too_long_is_aborted(own: MillstreamProcess) -> None:
    create(own, "t")
    made = producer(own, "slow", **{"transaction.timeout.ms": 1000})
    made.begin_transaction()
    write(made, "t", "too late")
    plain = Producer({"bootstrap.servers": own.bootstrap_servers})
    write(plain, "t", "in time")
    wait_until(lambda: read_to_end(own, "t") == ["in time"], "the abort", within_s=PATIENCE_S)
    with pytest.raises(KafkaException):
        made.commit_transaction(PATIENCE_S)
    assert read_to_end(own, "t") == ["in time"]


def test_a_transaction_that_was_open_when_the_broker_was_killed_ends(own: MillstreamProcess) -> None:
    create(own, "t", PARTITIONS)
    made = producer(own, "id", **{"transaction.timeout.ms": 60_000})
    transaction(made, "t", *["committed"] * PARTITIONS)
    made.begin_transaction()
    for partition in range(PARTITIONS):
        write(made, "t", "open", partition)
    own.kill()
    own.start()
    assert read_to_end(own, "t") == ["committed"] * PARTITIONS
    # Its producer never noticed: the transaction goes on where it was.
    made.commit_transaction(60)
    assert sorted(read_to_end(own, "t")) == ["committed"] * PARTITIONS + ["open"] * PARTITIONS


def test_a_transaction_whose_producer_died_with_the_broker_is_aborted(own: MillstreamProcess) -> None:
    create(own, "t")
    made = producer(own, "id", **{"transaction.timeout.ms": 60_000})
    transaction(made, "t", "committed")
    made.begin_transaction()
    write(made, "t", "orphaned")
    own.kill()
    own.start()
    heir = producer(own, "id")
    transaction(heir, "t", "the heir's")
    assert read_to_end(own, "t") == ["committed", "the heir's"]
    assert read_to_end(own, "t", "read_uncommitted") == ["committed", "orphaned", "the heir's"]


def test_it_is_also_aborted_by_its_timeout_when_nobody_comes(own: MillstreamProcess) -> None:
    create(own, "t")
    made = producer(own, "id", **{"transaction.timeout.ms": 3000})
    made.begin_transaction()
    write(made, "t", "orphaned")
    own.kill()
    own.start()
    plain = Producer({"bootstrap.servers": own.bootstrap_servers})
    write(plain, "t", "behind it")
    wait_until(lambda: read_to_end(own, "t") == ["behind it"], "the abort", within_s=PATIENCE_S)


def test_what_was_committed_survives_one_kill_after_another(own: MillstreamProcess) -> None:
    create(own, "t", PARTITIONS)
    told: list[str] = []
    unsure: list[str] = []
    made = producer(own, "id")
    numbers = count()
    for _ in range(3):
        for _ in range(5):
            value = str(next(numbers))
            transaction(made, "t", *[value] * PARTITIONS)
            told.append(value)
        value = str(next(numbers))
        made.begin_transaction()
        for partition in range(PARTITIONS):
            write(made, "t", value, partition)
        own.kill()
        own.start()
        unsure.append(value)
        made = producer(own, "id")
    seen = read_to_end(own, "t")
    assert sorted(seen) == sorted(told * PARTITIONS), f"{unsure} must be aborted"
