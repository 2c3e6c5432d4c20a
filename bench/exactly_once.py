"""What exactly-once costs: a producer whose transactions end ten times a second, and a copier with small ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bench import contenders, java_clients
from bench.rows import Bar, Figures, Row
from bench.throughput import BATCHED

if TYPE_CHECKING:
    from bench.session import Session

TRANSACTION_MS = 100
BATCH_RECORDS = 100


def produce_in_transactions(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    with contenders.topic(broker) as topic:
        produced = java_clients.produce(
            broker,
            topic,
            count=session.amount(5_000_000, 200_000),
            size=100,
            client_settings=BATCHED,
            transaction_ms=TRANSACTION_MS,
        )
    return {"records/s": produced.records_per_s, "latency ms": produced.latency_ms}


def consume_transform_produce(session: Session, name: str) -> Figures:
    """A batch is what one poll gave, at most so many records. The group forms during the warm-up."""
    broker = session.broker(name)
    count = session.amount(300_000, 10_000)
    warm_up = session.amount(100_000, 2_000)
    # Both parts may copy a batch more than they were told.
    written = warm_up + count + 2 * BATCH_RECORDS
    with contenders.topic(broker) as source, contenders.topic(broker) as target:
        java_clients.produce(broker, source, count=written, size=100, client_settings=BATCHED)
        rate = java_clients.copy_exactly_once(broker, source, target, warm_up=warm_up, count=count, each=BATCH_RECORDS)
    return {"records/s": rate}


ROWS = (
    Row(
        "produce-transactions",
        f"ProducerPerformance, 100 B, 6 partitions, transactions of {TRANSACTION_MS} ms",
        produce_in_transactions,
        (Bar("records/s", "records/s", ratio_at_least=1.2),),
    ),
    Row(
        "consume-transform-produce",
        f"consume-transform-produce, exactly once, batches of {BATCH_RECORDS}",
        consume_transform_produce,
        (Bar("records/s", "records/s", ratio_at_least=1.2),),
    ),
)
