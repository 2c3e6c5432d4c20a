"""Nexmark's queries q0 to q8 on Spark, exactly once: which run, and at what rate.

The events are in their topics before a query starts, in the order of their times; the rate is that of the records that
the query reads. A figure says what runs the query: Spark's own operators, Python, or one after the other. With --quick
the results are compared with those of the test driver.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from tests.support.requirements import PROJECT_ROOT

from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from bench.streams_spark import CHUNK, PARTITIONS, application, run_application
from millstream import arrow
from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics, delete_topics
from millstream.client.sync import SyncClient
from millstream.streams.lower.deciding import engines
from millstream.streams.plan.nodes import Sink

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.support.running import RunningBroker

    from bench.session import Session

sys.path.insert(0, str(PROJECT_ROOT / "examples"))
import nexmark
import nexmark_events

INPUTS = (nexmark_events.PERSONS, nexmark_events.AUCTIONS, nexmark_events.BIDS)
# The events have times of their own, so no topic may look at their age; streams_job.py says so for internal ones.
KEEP = {"retention.ms": "-1"}
# Their result is a table: what counts is the last value of each key.
TABLES = ("q3", "q4", "q5", "q6", "q7")


def figure(query: str) -> str:
    """Its name, with the engines of its sub-topologies in their order."""
    found = dict.fromkeys(said.split(": ")[1].partition(",")[0] for said in engines(nexmark.QUERIES[query]().plan))
    return f"{query}, {' and '.join(found)}"


@contextmanager
def named_topics(broker: RunningBroker, names: Sequence[str]) -> Iterator[None]:
    with SyncClient({"bootstrap.servers": broker.bootstrap_servers}) as client:
        raise_first(client.run(create_topics, [NewTopic(name, PARTITIONS, configs=KEEP) for name in names]))
        try:
            yield
        finally:
            client.run(delete_topics, list(names))


def write_events(broker: RunningBroker, count: int) -> Counter[str]:
    """How many went to each topic."""
    encode = msgspec.json.Encoder().encode
    waiting: dict[str, list[tuple[bytes, bytes, int]]] = {topic: [] for topic in INPUTS}
    written: Counter[str] = Counter()

    def flush(topic: str) -> None:
        keys, values, times = zip(*waiting[topic], strict=True)
        columns = {"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())}
        columns["timestamp"] = pa.array(times, pa.int64())
        arrow.write(broker.bootstrap_servers, topic, pa.table(columns))
        waiting[topic].clear()

    for topic, number, event in nexmark_events.events(count):
        waiting[topic].append((number.to_bytes(8, "big"), encode(event), event.date_time))
        written[topic] += 1
        if len(waiting[topic]) >= CHUNK:
            flush(topic)
    for topic in INPUTS:
        if waiting[topic]:
            flush(topic)
    return written


def queries(session: Session, name: str) -> Figures:
    broker = session.broker(name)
    events = session.amount(2_000_000, 10_000)
    figures: Figures = {}
    with named_topics(broker, INPUTS):
        written = write_events(broker, events)
        with application(session, broker) as ask:
            for query, reads in nexmark.INPUTS.items():
                records = sum(written[topic] for topic in reads)
                with named_topics(broker, [query]):
                    seconds = run_application(ask, f"nexmark.{query}", {}, records)
                    if session.quick:
                        _compare(broker, query, events)
                figures[figure(query)] = records / seconds
    return figures


def _compare(broker: RunningBroker, query: str, events: int) -> None:
    (sink,) = (node for node in nexmark.QUERIES[query]().plan.nodes if isinstance(node, Sink))
    read = arrow.read(broker.bootstrap_servers, query, columns=["key", "value"])
    found = [
        (sink.key_serde.deserialize(key), None if value is None else sink.value_serde.deserialize(value))
        for key, value in zip(read["key"].to_pylist(), read["value"].to_pylist(), strict=True)
    ]
    expected = nexmark.results(query, events)
    shape = _table if query in TABLES else _stream
    assert shape(found) == shape(expected), f"{query} on Spark says something else than in the driver"


def _table(rows: list[tuple[Any, Any]]) -> dict[Any, Any]:
    return {key: value for key, value in dict(rows).items() if value is not None}


def _stream(rows: list[tuple[Any, Any]]) -> Counter[str]:
    return Counter(map(repr, rows))


ROWS = (
    Row(
        "streams-nexmark",
        "streams on Spark: Nexmark's queries, exactly once",
        queries,
        tuple(Bar(figure(query), "records/s") for query in nexmark.QUERIES),
        rounds=1,
        contenders=(MILLSTREAM,),
    ),
)
