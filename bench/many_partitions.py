"""A topic of 2,000 partitions, whose records are spread over all of them as keys spread them.

Batches are small then, and a request holds many of them: what a broker does for each partition is what counts. Once
with Kafka's producer, which is busy itself with so many batches, and once from a raw socket, for the broker's own part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.raw import frame
from tests.support.running import cpu_seconds

from bench import contenders, raw_producer
from bench.contenders import APACHE_KAFKA, MILLSTREAM, STORE_LIMIT
from bench.rows import Bar, Figures, Row
from bench.throughput import ALL, produced
from millstream.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

if TYPE_CHECKING:
    from bench.session import Session

PARTITIONS = 2_000
# No keys in ProducerPerformance: each record goes to the next partition, which is as even as a hash is. Every partition
# has a batch open, so the client needs memory for all of them; 32 MB, its default, would be the limit.
SPREAD = {
    "acks": "all",
    "linger.ms": "5",
    "batch.size": "16384",
    "buffer.memory": "134217728",
    # A slow broker shall be slow, not failing: records may wait longer than the default of two minutes.
    "delivery.timeout.ms": "900000",
    "partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
}


def produce(session: Session, name: str) -> Figures:
    return produced(session, name, session.amount(500_000, 20_000), 100, SPREAD, partitions=PARTITIONS)


def produce_raw(session: Session, name: str) -> Figures:
    """Each request has a batch of one record for every partition."""
    broker = session.broker(name)
    requests = session.amount(200, 3)
    batch, records = raw_producer.prebuilt_batch(1)
    with contenders.topic(broker, PARTITIONS) as topic:
        data = [PartitionProduceData(index=index, records=batch) for index in range(PARTITIONS)]
        topics = [TopicProduceData(name=topic, partition_data=data)]
        request = frame(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics), raw_producer.VERSION, 1)
        # The first of each partition makes its files; they are not what this row is about.
        raw_producer.send_over_and_over(broker, [request], requests // 2)
        cpu_before = cpu_seconds(broker.pid)
        took_s = raw_producer.send_over_and_over(broker, [request], requests)
        return {
            "batches/s": requests * PARTITIONS * records / took_s,
            "broker CPU s": cpu_seconds(broker.pid) - cpu_before,
        }


ROWS = (
    Row(
        "produce-2000-partitions",
        f"ProducerPerformance, 100 B, {PARTITIONS:,} partitions in turn, acks=all, linger 5 ms",
        produce,
        (Bar("records/s", "records/s", of_limit_at_least=0.9), Bar("broker CPU s", "CPU s", ratio_at_most=0.5)),
        contenders=ALL,
    ),
    Row(
        "raw-2000-partitions",
        f"raw socket, a batch of one record for each of {PARTITIONS:,} partitions in a request, 8 in flight",
        produce_raw,
        (Bar("batches/s", "batches/s", ratio_at_least=5.0),),
        contenders=(APACHE_KAFKA, MILLSTREAM, STORE_LIMIT),
    ),
)
