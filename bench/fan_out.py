"""Several consumers that read the same topic: each record is written once and sent four times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.running import cpu_seconds

from bench import contenders, java_clients
from bench.contenders import APACHE_KAFKA, MILLSTREAM, STORE_LIMIT
from bench.rows import Bar, Figures, Row
from bench.throughput import BATCHED

if TYPE_CHECKING:
    from bench.session import Session

CONSUMERS = 4


def fan_out(session: Session, name: str) -> Figures:
    """Java consumers with their partitions assigned, in one process, started together; until the last has read all."""
    broker = session.broker(name)
    count = session.amount(3_000_000, 100_000)
    with contenders.topic(broker) as topic:
        java_clients.produce(broker, topic, count=count, size=100, client_settings=BATCHED)
        cpu_before = cpu_seconds(broker.pid)
        rate = java_clients.consume(broker, topic, count, CONSUMERS)
        return {"records/s": rate, "broker CPU s": cpu_seconds(broker.pid) - cpu_before}


ROWS = (
    Row(
        "fan-out",
        f"{CONSUMERS} assigned Java consumers in one process read the same topic, 100 B, records of all of them",
        fan_out,
        (Bar("records/s", "records/s", of_limit_at_least=0.9), Bar("broker CPU s", "CPU s", ratio_at_most=0.5)),
        # One that keeps nothing has nothing to read.
        contenders=(APACHE_KAFKA, MILLSTREAM, STORE_LIMIT),
    ),
)
