"""How much goes in and out: Kafka's own producer and consumer, and a raw socket for the broker's own limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.running import cpu_seconds

from bench import contenders, java_clients, raw_producer
from bench.contenders import APACHE_KAFKA, CLIENT_LIMIT, MILLSTREAM, STORE_LIMIT
from bench.rows import Bar, Figures, Row

if TYPE_CHECKING:
    from pathlib import Path

    from bench.session import Session

BATCHED = {"acks": "all", "batch.size": "65536", "linger.ms": "5"}
LARGE = {"acks": "all", "batch.size": "262144", "linger.ms": "5"}
ALL = (APACHE_KAFKA, MILLSTREAM, CLIENT_LIMIT, STORE_LIMIT)
# A raw socket outruns the disk. So much stays below the amount at which Linux makes a writer wait for it.
RAW_BYTES = 1_500_000_000
UNBATCHED = {"acks": "1", "batch.size": "0", "linger.ms": "0"}


def produced(
    session: Session, name: str, count: int, size: int | Path, settings: dict[str, str], partitions: int = 6
) -> Figures:
    """ProducerPerformance into a topic of its own, and the broker's processor time meanwhile."""
    broker = session.broker(name)
    with contenders.topic(broker, partitions) as topic:
        cpu_before = cpu_seconds(broker.pid)
        said = java_clients.produce(broker, topic, count=count, size=size, client_settings=settings)
        cpu_s = cpu_seconds(broker.pid) - cpu_before
    return {
        "records/s": said.records_per_s,
        "latency ms": said.latency_ms,
        "latency p99 ms": said.latency_ms_p99,
        "broker CPU s": cpu_s,
    }


def produce_100(session: Session, name: str) -> Figures:
    return produced(session, name, session.amount(5_000_000, 200_000), 100, BATCHED)


def produce_1k(session: Session, name: str) -> Figures:
    return produced(session, name, session.amount(1_000_000, 50_000), 1000, LARGE)


def produce_unbatched(session: Session, name: str) -> Figures:
    return produced(session, name, session.amount(200_000, 5_000), 100, UNBATCHED)


def _raw(session: Session, name: str, batch_bytes: int) -> Figures:
    broker = session.broker(name)
    batch, records = raw_producer.prebuilt_batch(batch_bytes)
    with contenders.topic(broker) as topic:
        raw_producer.run(
            broker, topic, batch, records, total_bytes=session.amount(RAW_BYTES // 3, len(batch) * 10)
        )  # to be warm
        rate = raw_producer.run(broker, topic, batch, records, total_bytes=session.amount(RAW_BYTES, len(batch) * 30))
    return {"records/s": rate.records, "requests/s": rate.requests, "MB/s": rate.megabytes}


def raw_1mb(session: Session, name: str) -> Figures:
    return _raw(session, name, 1_000_000)


def raw_10kb(session: Session, name: str) -> Figures:
    return _raw(session, name, 10_000)


def raw_single(session: Session, name: str) -> Figures:
    """What a request with one record costs a broker, whatever the client takes."""
    broker = session.broker(name)
    batch, _ = raw_producer.prebuilt_batch(1)
    count = session.amount(100_000, 5_000)
    with contenders.topic(broker) as topic:
        frames = raw_producer.request_frames(topic, batch, 6)
        raw_producer.send_over_and_over(broker, frames, count // 2)  # to be warm
        cpu_before = cpu_seconds(broker.pid)
        took_s = raw_producer.send_over_and_over(broker, frames, count)
        cpu_s = cpu_seconds(broker.pid) - cpu_before
    return {"requests/s": count / took_s, "broker CPU us": cpu_s / count * 1e6}


def consume(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    count = session.amount(5_000_000, 200_000)
    with contenders.topic(broker) as topic:
        java_clients.produce(broker, topic, count=count, size=100, client_settings=BATCHED)
        return {"records/s": java_clients.consume(broker, topic, count)}


def consume_in_group(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    count = session.amount(5_000_000, 200_000)
    with contenders.topic(broker) as topic:
        java_clients.produce(broker, topic, count=count, size=100, client_settings=BATCHED)
        consumed = java_clients.consume_in_group(broker, topic, count, group=f"readers-of-{topic}")
    return {
        "records/s": consumed.records_per_s,
        "fetched records/s": consumed.fetched_records_per_s,
        "rebalance ms": consumed.rebalance_ms,
    }


ROWS = (
    Row(
        "produce-100",
        "ProducerPerformance, 100 B, 6 partitions, acks=all, batch 64 KB, linger 5 ms",
        produce_100,
        (
            Bar("records/s", "records/s", ratio_at_least=1.5, of_limit_at_least=0.9),
            Bar("broker CPU s", "CPU s", ratio_at_most=1 / 3),
        ),
        contenders=ALL,
    ),
    Row(
        "produce-1k",
        "ProducerPerformance, 1 KB, 6 partitions, acks=all, batch 256 KB",
        produce_1k,
        (Bar("records/s", "records/s", ratio_at_least=1.1, of_limit_at_least=0.9),),
        contenders=ALL,
    ),
    Row(
        "produce-unbatched",
        "ProducerPerformance, 100 B, batch.size=0, acks=1",
        produce_unbatched,
        (Bar("records/s", "records/s", ratio_at_least=2.0, of_limit_at_least=0.9),),
        contenders=ALL,
    ),
    Row(
        "raw-1mb",
        "raw socket, prebuilt 1 MB batches, 8 in flight",
        raw_1mb,
        (Bar("records/s", "records/s", ratio_at_least=2.0, at_least=1_000_000),),
    ),
    Row(
        "raw-10kb",
        "raw socket, prebuilt 10 KB batches, 8 in flight",
        raw_10kb,
        (Bar("records/s", "records/s", ratio_at_least=2.0, at_least=1_000_000),),
    ),
    Row(
        "raw-single",
        "raw socket, requests of one record, 8 in flight: the broker's processor time for one of them",
        raw_single,
        (Bar("broker CPU us", "us"), Bar("requests/s", "requests/s")),
        contenders=ALL,
    ),
    Row(
        "consume",
        "assigned Java consumer reading it all, 100 B",
        consume,
        (Bar("records/s", "records/s", ratio_at_least=1.0),),
    ),
    Row(
        "consume-group",
        "ConsumerPerformance, 100 B, 6 partitions",
        consume_in_group,
        (Bar("records/s", "records/s", ratio_at_least=1.0),),
    ),
)
