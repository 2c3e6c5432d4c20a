"""What exactly once costs in Spark, and how long a record takes through it.

The copies are both ours: exactly once (`millstream.spark.start`) against at least once (`format("millstream")`), in one
Spark session. The latency is that of one record at a time: written to a topic, through a streaming query, read from
another by a consumer that sees only what is committed; against Spark's own connector, which is at least once.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import contenders
from bench.columns import CHUNK, PARTITIONS, VALUE_BYTES, table_of
from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from bench.spark import BATCH, WARM
from bench.spark_process import OURS, THEIRS, spark_process
from millstream import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from tests.support.running import RunningBroker

    from bench.session import Session

SCRIPT = Path(__file__).with_name("spark_exactly_once_job.py")
GUARANTEES = ("at_least_once", "exactly_once")


def copy(session: Session, name: str) -> Figures:
    return _copy(session, name, ["value"], table_of)


def copy_with_keys(session: Session, name: str) -> Figures:
    return _copy(session, name, ["key", "value"], _keyed)


def _keyed(records: int) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    value = b"x" * VALUE_BYTES
    for first in range(0, records, CHUNK):
        keys = pa.array([str(number).encode() for number in range(first, first + CHUNK)], pa.binary())
        yield pa.record_batch({"key": keys, "value": pa.array([value] * CHUNK, pa.binary())})


def _copy(session: Session, name: str, columns: list[str], rows: Callable[[int], Any]) -> Figures:
    broker = session.broker(name)
    records = session.amount(4_000_000, 200_000)
    rates: dict[str, float] = {}
    with (
        contenders.topic(broker, PARTITIONS) as source,
        contenders.topic(broker, PARTITIONS) as warm,
        spark_process(session, broker, OURS, SCRIPT) as ask,
    ):
        arrow.write(broker.bootstrap_servers, source, rows(records))
        arrow.write(broker.bootstrap_servers, warm, rows(WARM))
        for guarantee in GUARANTEES:
            with contenders.topic(broker, PARTITIONS) as target, contenders.topic(broker, PARTITIONS) as other:
                common = {"batch": BATCH, "guarantee": guarantee, "columns": columns}
                ask("copy", source=warm, target=other, checkpoint=f"warm-{guarantee}", **common)
                seconds = ask("copy", source=source, target=target, checkpoint=guarantee, **common)
                rates[guarantee] = records / seconds
                copied = sum(batch.num_rows for batch in arrow.stream(broker.bootstrap_servers, target, end="latest"))
                assert copied == records, f"{guarantee} copied {copied} of {records} records"
    return {
        "exactly once records/s": rates["exactly_once"],
        "at least once records/s": rates["at_least_once"],
        "ratio": rates["exactly_once"] / rates["at_least_once"],
    }


def stateless_latency(session: Session, name: str) -> Figures:
    return _latency(session, name, "stateless")


def windowed_latency(session: Session, name: str) -> Figures:
    return _latency(session, name, "windowed")


def _latency(session: Session, name: str, kind: str) -> Figures:
    broker = session.broker(name)
    samples = session.amount(100, 5)
    p50: dict[str, float] = {}
    for connector in (OURS, THEIRS):
        with spark_process(session, broker, connector, SCRIPT) as ask:
            for guarantee in GUARANTEES if connector == OURS else ("at_least_once",):
                with contenders.topic(broker, 1) as source, contenders.topic(broker, 1) as target:
                    ask("follow", source=source, target=target, checkpoint=guarantee, kind=kind, guarantee=guarantee)
                    took_ms = Probe(broker, source, target).measure(samples)
                    phases = ask("stop")
                p50[f"{connector} {guarantee}"] = statistics.median(took_ms)
                print(f"    {kind} {connector} {guarantee}: phases {phases}", file=sys.stderr, flush=True)
    ours, theirs = p50[f"{OURS} at_least_once"], p50[f"{THEIRS} at_least_once"]
    return {
        "p50": ours,
        "exactly once p50": p50[f"{OURS} exactly_once"],
        "connector p50": theirs,
        "ratio": ours / theirs,
    }


class Probe:
    """Sends one record, waits until it has come through, sends the next."""

    def __init__(self, broker: RunningBroker, source: str, target: str) -> None:
        self._source = source
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
        self._consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": f"probe-{target}",
                "isolation.level": "read_committed",
                "fetch.wait.max.ms": 100,
            }
        )
        self._consumer.assign([TopicPartition(target, 0, 0)])

    def measure(self, samples: int) -> list[float]:
        for number in range(5):
            self._through(f"warm-{number}".encode())
        took_ms = [self._through(f"{number:06}".encode()) for number in range(samples)]
        self._consumer.close()
        return took_ms

    def _through(self, value: bytes) -> float:
        began = time.perf_counter()
        self._producer.produce(self._source, value=value, key=value)
        self._producer.flush(30)
        deadline = began + 120
        while time.perf_counter() < deadline:
            message = self._consumer.poll(1)
            if message is not None and message.error() is None and message.value() == value:
                return (time.perf_counter() - began) * 1000
        raise TimeoutError(f"{value!r} did not come through in two minutes")


ROWS = (
    Row(
        "spark-exactly-once",
        "Spark streaming copy, exactly once against at least once, no keys",
        copy,
        (Bar("ratio", "x", at_least=0.8),),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "spark-exactly-once-keys",
        "Spark streaming copy, exactly once against at least once, with keys (a shuffle to one writer per partition)",
        copy_with_keys,
        (Bar("ratio", "x"),),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "spark-latency-stateless",
        "end-to-end latency of one record through Spark, a copy, against Spark's own connector",
        stateless_latency,
        (Bar("p50", "ms", at_most=200), Bar("ratio", "x", at_most=0.8), Bar("exactly once p50", "ms")),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "spark-latency-windowed",
        "end-to-end latency of one record through Spark, counts in windows, against Spark's own connector",
        windowed_latency,
        (Bar("p50", "ms", at_most=350), Bar("ratio", "x", at_most=0.8), Bar("exactly once p50", "ms")),
        contenders=(MILLSTREAM,),
    ),
)
