"""Streams: the test driver, in this one process without a broker; and what it takes to ask a table for a value."""

from __future__ import annotations

import statistics
import time
from http.client import HTTPConnection
from typing import TYPE_CHECKING

import pyarrow as pa

from bench import contenders
from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from millstream import arrow
from millstream.streams import StreamsBuilder, TopologyTestDriver, col, tumbling
from millstream.streams.queries import KeyValueView, StoreServer, follow_table

if TYPE_CHECKING:
    from bench.session import Session
    from millstream.streams import Topology

KEYS = 10_000
VALUE = {"user": "ada", "page": "/mill", "cents": 250}


def stateless_topology() -> Topology:
    builder = StreamsBuilder()
    clicks = builder.stream("in").filter(col("cents") > 100)
    clicks.select(user=col("user"), euros=col("cents") / 100).to("out")
    return builder.build()


def stateful_topology() -> Topology:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(tumbling(60_000, grace_ms=60_000)).count()
    counts.to_stream().to("out")
    return builder.build()


def _rate(topology: Topology, records: int) -> float:
    with TopologyTestDriver(topology) as driver:
        keys = [f"user-{number}" for number in range(KEYS)]
        pipe = driver.input_topic("in").pipe_input
        output = driver.output_topic("out")
        start = time.perf_counter()
        for number in range(records):
            pipe(keys[number % KEYS], VALUE, number)
        took = time.perf_counter() - start
        assert output.queue_size() == records, f"{output.queue_size()} of {records} records came out"
    return records / took


def driver(session: Session, name: str) -> Figures:
    assert name == MILLSTREAM
    records = session.amount(300_000, 20_000)
    return {
        "stateless records/s": _rate(stateless_topology(), records),
        "windowed count records/s": _rate(stateful_topology(), records),
    }


def queries(session: Session, name: str) -> Figures:
    """A table of as many keys, written as a topic, followed into memory, asked from here and over HTTP."""
    broker = session.broker(name)
    keys = [f"user-{number}" for number in range(session.amount(100_000, 1_000))]
    with contenders.topic(broker, 3) as topic:
        table = pa.table({"key": [key.encode() for key in keys], "value": [b'{"visits":7}'] * len(keys)})
        arrow.write(broker.bootstrap_servers, topic, table)
        start = time.perf_counter()
        with follow_table(broker.bootstrap_servers, topic, key=str, value=dict) as view:
            assert isinstance(view, KeyValueView)
            view.wait_until_current()
            loaded = len(keys) / (time.perf_counter() - start)
            start = time.perf_counter()
            for key in keys:
                view.get(key)
            get_us = (time.perf_counter() - start) / len(keys) * 1e6
            with StoreServer({"users": view}) as server:
                http_ms = _http_ms(server, keys[: session.amount(2_000, 100)])
    return {"loaded rows/s": loaded, "get us": get_us, "http p50 ms": http_ms}


def _http_ms(server: StoreServer, keys: list[str]) -> float:
    connection = HTTPConnection(server.address.removeprefix("http://"))
    took = []
    for key in keys:
        start = time.perf_counter()
        connection.request("GET", f"/stores/users/{key}")
        answer = connection.getresponse()
        answer.read()
        took.append(time.perf_counter() - start)
        assert answer.status == 200
    connection.close()
    return statistics.median(took) * 1e3


ROWS = (
    Row(
        "streams-driver",
        "TopologyTestDriver: JSON through filter and select; windowed count of 10,000 keys",
        driver,
        (
            Bar("stateless records/s", "records/s", at_least=100_000),
            Bar("windowed count records/s", "records/s", at_least=30_000),
        ),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "streams-queries",
        "interactive queries: a table of 100,000 keys followed into memory, one key at a time",
        queries,
        (Bar("get us", "us", at_most=50), Bar("http p50 ms", "ms", at_most=2)),
        contenders=(MILLSTREAM,),
    ),
)
