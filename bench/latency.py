"""From `produce` to `poll`: one record at a time through confluent-kafka, and a producer beside stalled consumers."""

from __future__ import annotations

import contextlib
import statistics
import time
from typing import TYPE_CHECKING

from confluent_kafka import Consumer, Producer, TopicPartition
from tests.support.raw import RawClient, frame
from tests.support.running import cpu_seconds
from tests.support.waiting import wait_until

from bench import contenders, raw_producer
from bench.rows import Bar, Figures, Row
from millstream.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

if TYPE_CHECKING:
    from bench.session import Session

WARM_UP = 200
STALLED_CONSUMERS = 50


def ping_pong(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    with contenders.topic(broker, partitions=1) as topic:
        return one_at_a_time(broker.bootstrap_servers, topic, session.amount(5_000, 300))


def one_at_a_time(bootstrap_servers: str, topic: str, count: int) -> Figures:
    """Records through confluent-kafka, acks=all, each from `produce` to `poll` before the next."""
    common = {"bootstrap.servers": bootstrap_servers, "log_level": 0}
    took_ms: list[float] = []
    producer = Producer(common | {"acks": "all", "linger.ms": 0})
    consumer = Consumer(common | {"group.id": "none", "enable.auto.commit": False, "fetch.wait.max.ms": 500})
    consumer.assign([TopicPartition(topic, 0, 0)])
    for number in range(WARM_UP + count):
        sent_at = time.perf_counter()
        producer.produce(topic, b"%d" % number)
        producer.flush()
        message = None
        while message is None:
            message = consumer.poll(10)
        assert message.error() is None, message.error()
        assert message.value() == b"%d" % number
        took_ms.append((time.perf_counter() - sent_at) * 1000)
    consumer.close()
    return _percentiles(took_ms)


def _percentiles(took_ms: list[float]) -> Figures:
    percentiles = statistics.quantiles(took_ms[WARM_UP:], n=100)
    return {"p50 ms": percentiles[49], "p99 ms": percentiles[98]}


def ping_pong_raw(session: Session, name: str) -> Figures:
    """The same without a client library, from a Produce to the long poll's answer: the broker's own part."""
    broker = session.broker(name)
    count = session.amount(5_000, 300)
    batch, _ = raw_producer.prebuilt_batch(1)
    took_ms: list[float] = []
    with (
        contenders.topic(broker, partitions=1) as topic,
        RawClient.of(broker) as sender,
        RawClient.of(broker) as reader,
    ):
        (produce,) = raw_producer.request_frames(topic, batch, 1)
        for offset in range(WARM_UP + count):
            partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
            topics = [FetchTopic(topic=topic, partitions=[partition])]
            reader.send(FetchRequest(max_wait_ms=10_000, min_bytes=1, max_bytes=1 << 20, topics=topics), 11)
            sent_at = time.perf_counter()
            sender.send_bytes(produce)
            sender.receive_frame()
            answer = reader.receive_frame()
            took_ms.append((time.perf_counter() - sent_at) * 1000)
            assert answer is not None
            assert len(answer) > len(batch)
    return _percentiles(took_ms)


def _wait_for_quiet(pid: int) -> None:
    """Until the broker has stopped working on what the stalled consumers asked for: their stall is what counts."""
    used_s: list[float] = []

    def quiet() -> bool:
        used_s.append(cpu_seconds(pid))
        return len(used_s) > 4 and used_s[-1] - used_s[-4] < 0.05

    wait_until(quiet, "a quiet broker", within_s=60, every_s=0.25)


def beside_stalled_consumers(session: Session, name: str) -> Figures:
    """Consumers that ask for a lot, again and again, and read none of it.

    The rate alone is taken before and after: write-back of the page cache slows a long run down by itself.
    """
    broker = session.broker(name)
    batch, records = raw_producer.prebuilt_batch(100_000)
    total_bytes = session.amount(800_000_000, 20_000_000)
    with contenders.topic(broker) as topic:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=8 << 20)
        wanted = FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=8 << 20, topics=[FetchTopic(topic=topic, partitions=[partition])]
        )
        raw_producer.run(broker, topic, batch, records, total_bytes=total_bytes)  # to be warm
        before = raw_producer.run(broker, topic, batch, records, total_bytes=total_bytes).records
        with contextlib.ExitStack() as stalled:
            for _ in range(STALLED_CONSUMERS):
                consumer = stalled.enter_context(RawClient.of(broker))
                consumer.send_bytes(b"".join(frame(wanted, 11, number) for number in range(10)))
            _wait_for_quiet(broker.pid)
            beside = raw_producer.run(broker, topic, batch, records, total_bytes=total_bytes).records
        _wait_for_quiet(broker.pid)
        after = raw_producer.run(broker, topic, batch, records, total_bytes=total_bytes).records
    alone = (before + after) / 2
    return {"alone records/s": alone, "beside records/s": beside, "of alone": beside / alone}


ROWS = (
    Row(
        "ping-pong",
        "ping-pong through confluent-kafka, acks=all",
        ping_pong,
        (Bar("p50 ms", "ms", ratio_at_most=0.6), Bar("p99 ms", "ms", ratio_at_most=0.5, at_most=10)),
    ),
    Row(
        "ping-pong-raw",
        "the same from raw sockets: the broker's own part",
        ping_pong_raw,
        (Bar("p50 ms", "ms", ratio_at_most=0.6), Bar("p99 ms", "ms", ratio_at_most=0.5, at_most=10)),
    ),
    Row(
        "stalled-consumers",
        f"producer rate beside {STALLED_CONSUMERS} stalled consumers, of its rate alone",
        beside_stalled_consumers,
        (Bar("of alone", "x", at_least=0.95),),
    ),
)
