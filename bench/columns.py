"""Topics as Arrow against confluent-kafka, each in this one process, on the same broker and the same records.

confluent-kafka is given a smaller part of the records, since it takes so much longer; the figures are rates.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

from bench import contenders
from bench.contenders import CLIENT_LIMIT, MILLSTREAM, STORE_LIMIT
from bench.rows import Bar, Figures, Row
from millstream import arrow

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

    from bench.session import Session

PARTITIONS = 6
VALUE_BYTES = 100
CHUNK = 100_000


def table_of(records: int) -> list[pa.RecordBatch]:
    """So many records of 100 bytes, the same batch over and over."""
    chunk = pa.record_batch({"value": pa.array([b"x" * VALUE_BYTES] * CHUNK, pa.binary())})
    return [chunk] * (records // CHUNK)


def read(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    records = session.amount(7_000_000, 200_000)
    with contenders.topic(broker, PARTITIONS) as topic:
        arrow.write(broker.bootstrap_servers, topic, table_of(records))
        start = time.perf_counter()
        rows = sum(batch.num_rows for batch in arrow.stream(broker.bootstrap_servers, topic, end="latest"))
        arrow_rate = rows / (time.perf_counter() - start)
        assert rows == records, f"{rows} of {records} records were read"
        confluent_rate = _consume(broker, topic, min(records, 1_000_000))
    return {"arrow records/s": arrow_rate, "confluent records/s": confluent_rate, "ratio": arrow_rate / confluent_rate}


def write(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    records = session.amount(7_000_000, 200_000)
    with contenders.topic(broker, PARTITIONS) as topic:
        batches = table_of(records)
        # So that no round pays for loading the client (70 ms, where a round takes 600).
        arrow.write(broker.bootstrap_servers, topic, batches[0].slice(0, 1))
        start = time.perf_counter()
        arrow.write(broker.bootstrap_servers, topic, batches)
        arrow_rate = records / (time.perf_counter() - start)
    # The peer always has a whole broker, also where the table goes to one that only stores, or keeps nothing.
    whole = session.broker(MILLSTREAM)
    with contenders.topic(whole, PARTITIONS) as topic:
        confluent_rate = _produce(whole, topic, min(records, 1_000_000))
    return {"arrow records/s": arrow_rate, "confluent records/s": confluent_rate, "ratio": arrow_rate / confluent_rate}


def _consume(broker: RunningBroker, topic: str, records: int) -> float:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])
    consumer.consume(1, 30)  # one to be connected, as it is when a job runs
    seen, start = 0, time.perf_counter()
    while seen < records - 1:
        for message in consumer.consume(10_000, 1):
            assert message.error() is None, message.error()
            seen += len(message.value()) == VALUE_BYTES
    took = time.perf_counter() - start
    consumer.close()
    return seen / took


def _produce(broker: RunningBroker, topic: str, records: int) -> float:
    """Librdkafka at its own batch.size and linger.ms; idempotent as ours is, and with room for all that it is given."""
    settings = {"bootstrap.servers": broker.bootstrap_servers, "queue.buffering.max.messages": 1_000_000}
    producer = Producer({**settings, "enable.idempotence": True})
    value = b"x" * VALUE_BYTES
    start = time.perf_counter()
    for _ in range(records):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    producer.flush(60)
    return records / (time.perf_counter() - start)


ROWS = (
    Row(
        "arrow-read",
        "arrow.stream, batches counted and let go, 100 B, 6 partitions, against confluent-kafka's consume()",
        read,
        (Bar("ratio", "x", at_least=12), Bar("arrow records/s", "records/s", at_least=2_500_000)),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "arrow-write",
        "arrow.write of a table, 100 B, 6 partitions, acks=all, against confluent-kafka's produce()",
        write,
        (Bar("ratio", "x", at_least=8),),
        contenders=(MILLSTREAM, STORE_LIMIT, CLIENT_LIMIT),
    ),
)
