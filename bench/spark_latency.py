"""How long a record takes through Spark: written to a topic, through a streaming query, read from another topic.

One record at a time: it is sent when the one before has come out, so at the moment that makes it wait longest, right
after a batch has begun to end. The reader sees only what is committed. Against Spark's own connector, which is at least
once. The floor is what Spark needs for a batch of one row without any topic, with the settings of our session.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer, TopicPartition

from bench import contenders
from bench.contenders import MILLSTREAM
from bench.rows import Bar, Figures, Row
from bench.spark_process import OURS, THEIRS, THEIRS_BY_DEFAULT, spark_process

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

    from bench.session import Session

SCRIPT = Path(__file__).with_name("spark_latency_job.py")
STATELESS, WINDOWED = "stateless", "windowed"
# Which connector, and with which guarantee.
WAYS = (
    (OURS, "at_least_once"),
    (OURS, "exactly_once"),
    (THEIRS, "at_least_once"),
    (THEIRS_BY_DEFAULT, "at_least_once"),
)


def stateless(session: Session, name: str) -> Figures:
    return _latency(session, name, STATELESS)


def windowed(session: Session, name: str) -> Figures:
    return _latency(session, name, WINDOWED)


def _latency(session: Session, name: str, kind: str) -> Figures:
    broker = session.broker(name)
    warm, samples = session.amount(40, 5), session.amount(60, 5)
    p50: dict[tuple[str, str], float] = {}
    for connector, guarantee in WAYS:
        with (
            spark_process(session, broker, connector, SCRIPT) as ask,
            contenders.topic(broker, 1) as source,
            contenders.topic(broker, 1) as target,
        ):
            ask("follow", source=source, target=target, checkpoint=guarantee, kind=kind, guarantee=guarantee)
            took_ms = Probe(broker, source, target).measure(warm, samples)
            _say(f"{kind} {connector} {guarantee}", ask("stop"))
        p50[connector, guarantee] = statistics.median(took_ms)
    ours, exactly_once, theirs, theirs_by_default = (p50[way] for way in WAYS)
    return {
        "p50": ours,
        "exactly once p50": exactly_once,
        "connector p50": theirs,
        "connector by default p50": theirs_by_default,
        "ratio": ours / theirs,
        "ratio to its defaults": ours / theirs_by_default,
    }


def floor(session: Session, name: str) -> Figures:
    """Spark's own part: from one batch of one row to the next, for each kind of query, without and with Python."""
    broker = session.broker(name)
    batches = session.amount(150, 10)
    found: Figures = {}
    for kind in (STATELESS, WINDOWED):
        with spark_process(session, broker, OURS, SCRIPT) as ask:
            for figure, through_python in ((kind, False), (f"{kind} with Python", True)):
                phases = ask("idle", kind=kind, checkpoint=figure, batches=batches, through_python=through_python)
                _say(f"floor {figure}", phases)
                found[figure] = phases["period"]
    return found


def _say(what: str, phases: dict[str, Any]) -> None:
    said = ", ".join(f"{phase} {took_ms:.0f}" for phase, took_ms in phases.items())
    print(f"    {what}: {said}", file=sys.stderr, flush=True)


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

    def measure(self, warm: int, samples: int) -> list[float]:
        """How long each of the samples took, in ms, after so many that don't count."""
        took_ms = [self._through(f"{number:06}".encode()) for number in range(warm + samples)]
        self._consumer.close()
        return took_ms[warm:]

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


COMPARED = (Bar("ratio", "x", at_most=0.8), Bar("ratio to its defaults", "x"), Bar("exactly once p50", "ms"))
ROWS = (
    Row(
        "spark-latency-stateless",
        "end-to-end latency of one record through Spark, a copy, against Spark's own connector",
        stateless,
        (
            Bar("p50", "ms", at_most=200),
            Bar("ratio", "x", at_most=0.8),
            Bar("ratio to its defaults", "x"),
            Bar("exactly once p50", "ms"),
        ),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "spark-latency-windowed",
        "end-to-end latency of one record through Spark, counts in windows, against Spark's own connector",
        windowed,
        (
            Bar("p50", "ms", at_most=350),
            Bar("ratio", "x", at_most=0.8),
            Bar("ratio to its defaults", "x"),
            Bar("exactly once p50", "ms"),
        ),
        contenders=(MILLSTREAM,),
    ),
    Row(
        "spark-latency-floor",
        "Spark's own part of that: from batch to batch of one row, without topics",
        floor,
        tuple(Bar(figure, "ms") for kind in (STATELESS, WINDOWED) for figure in (kind, f"{kind} with Python")),
        contenders=(MILLSTREAM,),
    ),
)
