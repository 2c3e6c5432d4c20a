"""Streams on Spark against Kafka Streams 4.3.1, the original in Java: the same topologies, exactly once on both sides.

Both run on the same broker, one after the other, on all cores: ours in a Spark with two of them, Kafka Streams with as
many threads, each with the same heap and everything else at its defaults. Both send a key's result again when it has
changed: Kafka Streams with each commit (100 ms), ours with each micro-batch. Either is started on empty topics and
given records until Java has compiled what it runs. Then the records that count are written at once, and the time is
that until the consumer group has committed all of them. What came out is counted for both.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from confluent_kafka import Consumer, TopicPartition
from tests.support.apache_kafka import VERSION
from tests.support.maven import Artifact, compiled_class, fetched_jars
from tests.support.requirements import require
from tests.support.waiting import wait_until

from bench import contenders
from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from bench.streams_spark import (
    CHUNK,
    PARTITIONS,
    RECORDS_PER_SECOND,
    START_MS,
    application,
    follow_application,
    last_counts,
    say,
)
from millstream import arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.running import RunningBroker

    from bench.session import Session

    Side = Callable[["Session", "RunningBroker", str, "Topics"], "contextmanager[str]"]

SOURCE = Path(__file__).with_name("KafkaStreamsRival.java")
ARTIFACTS = (Artifact("org.apache.kafka", "kafka-streams", VERSION), Artifact("org.slf4j", "slf4j-simple", "1.7.36"))
# What Spark's driver gets in streams_job.py.
HEAP = ("-Xmx2g", "-Xms2g", "-XX:+UseG1GC")
KEYS = 10_000
TABLE_KEYS = 100_000
RECORDS, WARM_UP = 3_000_000, 1_000_000
COMMITTED_WITHIN_S = 900
# A session of `sessions`: so many records of a key within two seconds, then other keys' turn.
_SESSION_RECORDS, _SESSION_KEYS = 20, 2_000
_names = itertools.count(1)

# A topology's topics by the names of its arguments: source, target, and for joins table or other.
Topics = dict[str, str]


def _evenly(number: int) -> int:
    return number * 7919 % KEYS


def _in_bursts(number: int) -> int:
    return (number // (_SESSION_RECORDS * _SESSION_KEYS) * 977 + number % _SESSION_KEYS) % KEYS


def _each_once(number: int) -> int:
    return number


def _of_the_table(number: int) -> int:
    return number * 7919 % TABLE_KEYS


def records(first: int, count: int, key: Callable[[int], int]) -> Iterator[pa.RecordBatch]:
    """Records of 100 bytes in the order of their times; `first` goes on where others ended."""
    value = b"v" * 88
    for start in range(first, first + count, CHUNK):
        numbers = range(start, min(start + CHUNK, first + count))
        yield pa.record_batch(
            {
                "key": pa.array([b"user-%07d" % key(number) for number in numbers], pa.binary()),
                "value": pa.array([value] * len(numbers), pa.binary()),
                "timestamp": pa.array([START_MS + each * 1_000 // RECORDS_PER_SECOND for each in numbers], pa.int64()),
            }
        )


def input_batches(topics: Topics, first: int, count: int, key: Callable[[int], int]) -> list[pa.RecordBatch]:
    """Each row says where it goes; two streams get the same keys at the same times, half of the records each."""
    targets = [topics["source"], *([topics["other"]] if "other" in topics else [])]
    parts = records(first // len(targets), count // len(targets), key)
    return [
        part.append_column("topic", pa.array([target] * part.num_rows, pa.string()))
        for part in parts
        for target in targets
    ]


@contextmanager
def ours(session: Session, broker: RunningBroker, topology: str, topics: Topics) -> Iterator[str]:
    with application(session, broker) as ask:
        yield follow_application(ask, topology, topics)
        say(f"{topology}: phases in ms {ask('stop')}")


@contextmanager
def kafka_streams(session: Session, broker: RunningBroker, topology: str, topics: Topics) -> Iterator[str]:
    jars = fetched_jars(f"kafka-streams-{VERSION}", ARTIFACTS)
    folder = session.folder("kafka-streams-")
    application_id = f"kafka-streams-{next(_names)}"
    others = [name for argument, name in topics.items() if argument not in ("source", "target")]
    command = [
        *(require("java"), *HEAP, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"),
        *("-cp", f"{compiled_class(SOURCE, jars)}:{jars}/*", SOURCE.stem),
        *(broker.bootstrap_servers, topology, application_id, str(folder / "state"), str(os.cpu_count())),
        *(topics["source"], topics["target"], *others),
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        assert said == "running\n", f"Kafka Streams did not start: {(folder / 'log').read_text()[-2000:]}"
        yield application_id
        process.stdin.close()
        process.wait(60)
    finally:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def wait_for_commits(broker: RunningBroker, group: str, topics: Topics) -> None:
    """Until the group has committed the end of every partition that it reads."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "log_level": 0})
    partitions = [
        TopicPartition(name, index)
        for argument, name in topics.items()
        if argument != "target"
        for index in range(PARTITIONS)
    ]
    ends = [consumer.get_watermark_offsets(each, timeout=60)[1] for each in partitions]

    def committed() -> bool:
        found = consumer.committed(partitions, timeout=60)
        return all(max(each.offset, 0) >= end for each, end in zip(found, ends, strict=True))

    try:
        wait_until(committed, f"the commits of {group}", within_s=COMMITTED_WITHIN_S, every_s=0.02)
    finally:
        consumer.close()


def rate(session: Session, broker: RunningBroker, side: Side, topology: str, key: Callable[[int], int]) -> float:
    """Records a second of one side; both streams' records count where there are two."""
    count, warm_up = session.amount(RECORDS, 20_000), session.amount(WARM_UP, 10_000)
    servers = broker.bootstrap_servers
    second = {"table_join": "table", "stream_join": "other"}.get(topology)
    with ExitStack() as stack:
        names = ["source", "target", *([second] if second else [])]
        topics = {name: stack.enter_context(contenders.topic(broker, PARTITIONS)) for name in names}
        group = stack.enter_context(side(session, broker, topology, topics))
        if "table" in topics:
            arrow.write(servers, topics["table"], records(0, TABLE_KEYS, _each_once))
            wait_for_commits(broker, group, topics)
        arrow.write(servers, None, input_batches(topics, 0, warm_up, key))
        wait_for_commits(broker, group, topics)
        # Made before: it would take the processors' time.
        batches = input_batches(topics, warm_up, count, key)
        began = time.perf_counter()
        arrow.write(servers, None, batches)
        wait_for_commits(broker, group, topics)
        seconds = time.perf_counter() - began
        came_out, expected = results(servers, topology, topics["target"]), warm_up + count
        if topology == "stream_join":
            expected //= 2  # pairs
        assert came_out == expected, f"{topology}, {side.__name__}: results for {came_out} of {expected} records"
    say(f"{topology}, {side.__name__}: {count:,} records in {seconds:.1f} s")
    return count / seconds


def results(servers: str, topology: str, target: str) -> int:
    """For how many records, or pairs of them, there are results."""
    if topology in ("windowed_count", "sessions"):
        return sum(last_counts(servers, target).values())
    return sum(batch.num_rows for batch in arrow.stream(servers, target, end="latest", columns=["offset"]))


def compare(session: Session, name: str, topology: str, key: Callable[[int], int]) -> Figures:
    broker = session.broker(name)
    rates = {side.__name__: rate(session, broker, side, topology, key) for side in (kafka_streams, ours)}
    return {
        "records/s": rates["ours"],
        "Kafka Streams records/s": rates["kafka_streams"],
        "ratio": rates["ours"] / rates["kafka_streams"],
    }


TOPOLOGIES = {
    "map": ("mapped", _evenly, "a new value for each record"),
    "windowed-count": ("windowed_count", _evenly, f"windowed count, {KEYS:,} keys"),
    "table-join": ("table_join", _of_the_table, f"join with a table of {TABLE_KEYS:,} keys"),
    "sessions": ("sessions", _in_bursts, f"count in sessions, {KEYS:,} keys"),
    "stream-join": ("stream_join", _each_once, "join of two streams, each record with one of the other's"),
}
ROWS = tuple(
    Row(
        f"kafka-streams-{short}",
        f"{what}, 100 B, exactly once: streams on Spark against Kafka Streams {VERSION}, until all is committed",
        partial(compare, topology=topology, key=key),
        (Bar("ratio", "x"), Bar("records/s", "records/s"), Bar("Kafka Streams records/s", "records/s")),
        contenders=(MILLSTREAM,),
    )
    for short, (topology, key, what) in TOPOLOGIES.items()
)
