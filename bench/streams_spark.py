"""Streams on Spark: what a windowed count, and a join with a large table, take from topic to topic.

Each runs in a Spark of its own, after a small amount of the same work that makes it warm. The time is that from the
start of the application until everything that was there has gone through.
"""

from __future__ import annotations

import itertools
import statistics
import struct
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from confluent_kafka import Consumer, Producer, TopicPartition

from bench import contenders
from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from bench.spark_process import OURS, spark_process
from millstream import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.running import RunningBroker

    from bench.session import Session

SCRIPT = Path(__file__).with_name("streams_job.py")
PARTITIONS = 6
BATCH = 500_000
CHUNK = 100_000
WARM = 10_000
KEYS = 10_000
TABLE_KEYS = 1_000_000
UPDATES_PERCENT = 5
# Of the last half hour, so that no broker deletes them for their age.
START_MS = (time.time_ns() // 60_000_000_000 - 30) * 60_000
RECORDS_PER_SECOND = 20_000
EXACTLY_ONCE, AT_LEAST_ONCE = "exactly_once_v2", "at_least_once"
_LONG = struct.Struct(">q")
_applications = itertools.count(1)


@contextmanager
def application(session: Session, broker: RunningBroker) -> Iterator[Callable[..., Any]]:
    """A Spark that runs applications; its calls are those of streams_job.py."""
    with spark_process(session, broker, OURS, SCRIPT) as ask:
        yield ask


def follow_application(
    ask: Callable[..., Any],
    topology: str,
    topics: dict[str, str],
    *,
    guarantee: str = EXACTLY_ONCE,
    batch: int | None = None,
) -> str:
    """Start an application that was not there before; with `batch` so many records at once, else as many as usual.

    Its id, which is that of its consumer group too.
    """
    application_id = f"bench-app-{next(_applications)}"
    engines = ask(
        "follow",
        topology=topology,
        arguments=topics,
        application_id=application_id,
        guarantee=guarantee,
        batch=batch,
    )
    say(f"{topology}: engines {engines}")
    return application_id


def run_application(ask: Callable[..., Any], topology: str, topics: dict[str, str], records: int) -> float:
    """Seconds from its start until all these records have gone through, exactly once."""
    began = time.perf_counter()
    follow_application(ask, topology, topics, batch=BATCH)
    ask("settle")
    seconds = time.perf_counter() - began
    say(f"{topology}: {records:,} records in {seconds:.1f} s, phases in ms {ask('stop')}")
    return seconds


def say(sentence: str) -> None:
    """What happens, for who watches."""
    print(f"    {sentence}", file=sys.stderr, flush=True)


def rows(
    count: int, keys: int, value_bytes: int, *, stride: int = 7919, per_second: int = RECORDS_PER_SECOND
) -> Iterator[pa.RecordBatch]:
    """Records with texts as keys, in the order of their times."""
    value = b"v" * value_bytes
    for first in range(0, count, CHUNK):
        numbers = range(first, min(first + CHUNK, count))
        times = [START_MS + number * 1_000 // per_second for number in numbers]
        yield pa.record_batch(
            {
                "key": pa.array([b"user-%07d" % (number * stride % keys) for number in numbers], pa.binary()),
                "value": pa.array([value] * len(numbers), pa.binary()),
                "timestamp": pa.array(times, pa.int64()),
            }
        )


def mixed(stream: Iterator[pa.RecordBatch], table: pa.Table, source: str, target: str) -> Iterator[pa.RecordBatch]:
    """A stream's batches, and behind each of them its share of a table's changes; each row says where it goes."""
    share = CHUNK * UPDATES_PERCENT // (100 - UPDATES_PERCENT)
    for number, batch in enumerate(stream):
        yield batch.append_column("topic", pa.array([source] * batch.num_rows))
        for part in table.slice(number * share, share).to_batches():
            yield part.append_column("topic", pa.array([target] * part.num_rows))


def windowed_count(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    records = session.amount(6_000_000, 20_000)
    servers = broker.bootstrap_servers
    with (
        contenders.topic(broker, PARTITIONS) as source,
        contenders.topic(broker, PARTITIONS) as target,
        contenders.topic(broker, PARTITIONS) as warm,
        contenders.topic(broker, PARTITIONS) as other,
    ):
        arrow.write(servers, source, rows(records, KEYS, 88))
        arrow.write(servers, warm, rows(WARM, KEYS, 88))
        with application(session, broker) as ask:
            run_application(ask, "windowed_count", {"source": warm, "target": other}, WARM)
            seconds = run_application(ask, "windowed_count", {"source": source, "target": target}, records)
        counted = sum(last_counts(servers, target).values())
    assert counted == records, f"{counted} of {records} records were counted"
    return {"records/s": records / seconds}


def last_counts(servers: str, topic: str) -> dict[bytes, int]:
    """The last count of each key and window; a session that became part of a longer one has none."""
    found: dict[bytes, int] = {}
    for batch in arrow.stream(servers, topic, end="latest", columns=["key", "value"]):
        for key, value in zip(batch["key"].to_pylist(), batch["value"].to_pylist(), strict=True):
            found[key] = 0 if value is None else _LONG.unpack(value)[0]
    return found


def table_join(session: Session, name: str) -> Figures:
    """A table that is there, then a stream on it, where one in twenty of all records changes the table."""
    broker = session.broker(name)
    servers = broker.bootstrap_servers
    keys = session.amount(TABLE_KEYS, 2_000)
    records = session.amount(4_000_000, 20_000)
    updates = records * UPDATES_PERCENT // (100 - UPDATES_PERCENT)
    with (
        contenders.topic(broker, PARTITIONS) as source,
        contenders.topic(broker, PARTITIONS) as table,
        contenders.topic(broker, PARTITIONS) as target,
        application(session, broker) as ask,
    ):
        arrow.write(servers, table, rows(keys, keys, 40, stride=1))
        arrow.write(servers, source, rows(WARM, keys, 60))
        topics = {"source": source, "table": table, "target": target}
        follow_application(ask, "table_join", topics)
        say(f"table_join: {keys:,} rows in {ask('settle'):.1f} s")
        rate = RECORDS_PER_SECOND * UPDATES_PERCENT // (100 - UPDATES_PERCENT)
        changes = pa.Table.from_batches(rows(updates, keys, 41, per_second=rate))
        batches = list(mixed(rows(records, keys, 60), changes, source, table))
        began = time.perf_counter()
        arrow.write(servers, None, batches)
        ask("settle")
        seconds = time.perf_counter() - began
        say(f"table_join: {seconds:.1f} s, phases in ms {ask('stop')}")
        joined = sum(batch.num_rows for batch in arrow.stream(servers, target, end="latest", columns=["offset"]))
    wanted = records + WARM
    # The first of the stream may have come before their row of the table.
    assert records <= joined <= wanted, f"{joined} of {wanted} records were joined"
    return {"records/s": records / seconds}


def latency(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    samples = session.amount(100, 5)
    p50: dict[str, float] = {}
    with application(session, broker) as ask:
        for guarantee in (AT_LEAST_ONCE, EXACTLY_ONCE):
            with contenders.topic(broker, 1) as source, contenders.topic(broker, 1) as target:
                topics = {"source": source, "target": target}
                follow_application(ask, "windowed_count", topics, guarantee=guarantee)
                took_ms = through(broker, source, target, samples)
                say(f"latency {guarantee}: phases in ms {ask('stop')}")
            p50[guarantee] = statistics.median(took_ms)
    return {"p50": p50[AT_LEAST_ONCE], "exactly once p50": p50[EXACTLY_ONCE]}


def through(broker: RunningBroker, source: str, target: str, samples: int) -> list[float]:
    """How long each record takes until its count comes out, in ms; one at a time, each with a key of its own."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": f"probe-{target}",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.assign([TopicPartition(target, 0, 0)])

    def one(key: bytes) -> float:
        began = time.perf_counter()
        producer.produce(source, key=key, value=b"x")
        producer.flush(30)
        while time.perf_counter() < began + 120:
            message = consumer.poll(1)
            # Behind the key is the window's start.
            if message is not None and message.error() is None and (message.key() or b"")[:-8] == key:
                return (time.perf_counter() - began) * 1000
        raise TimeoutError(f"the count of {key!r} did not come in two minutes")

    for number in range(5):
        one(b"warm-%d" % number)
    took_ms = [one(b"%06d" % number) for number in range(samples)]
    consumer.close()
    return took_ms


ROWS = (
    Row(
        "streams-windowed-count",
        "streams on Spark: windowed count, 100 B records, 10,000 keys, topic to topic, exactly once",
        windowed_count,
        (Bar("records/s", "records/s", at_least=150_000),),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "streams-table-join",
        "streams on Spark: join with a table of 1M keys that 5 % of the input updates, exactly once",
        table_join,
        (Bar("records/s", "records/s", at_least=120_000),),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "streams-latency",
        "streams on Spark: end-to-end latency of one record through a windowed count",
        latency,
        (Bar("p50", "ms", at_most=350), Bar("exactly once p50", "ms")),
        contenders=(MILLSTREAM,),
    ),
)
