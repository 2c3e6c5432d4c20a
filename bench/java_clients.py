"""Apache Kafka's own clients as loads: its perf tools, and small Java programs where it has no tool.

`ConsumerPerformance` reads in a group; `AssignedConsumer` has its partitions assigned by hand; `ExactlyOnceCopier` is
the consume-transform-produce loop of the textbook.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support.apache_kafka import jar_directory, java_command
from tests.support.requirements import require

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

CONSUMER = Path(__file__).with_name("AssignedConsumer.java")
COPIER = Path(__file__).with_name("ExactlyOnceCopier.java")
_RESULT = re.compile(r"(\d+) records sent, ([\d.]+) records/sec .*? ([\d.]+) ms avg latency.* (\d+) ms 99th")
# The same for both contenders: a client with room, compiled by both of the JVM's compilers.
CLIENT_JVM = ("-Xmx512m", "-Xms512m", "-XX:+UseG1GC")


class Produced(NamedTuple):
    """What ProducerPerformance said at its end."""

    records_per_s: float
    latency_ms: float
    latency_ms_p99: float


class Consumed(NamedTuple):
    """What ConsumerPerformance said at its end: with the time that the group took to form, and without."""

    records_per_s: float
    fetched_records_per_s: float
    rebalance_ms: float


def produce(
    broker: RunningBroker,
    topic: str,
    *,
    count: int,
    size: int | Path,
    client_settings: dict[str, str],
    transaction_ms: int | None = None,
) -> Produced:
    """Run ProducerPerformance as fast as it goes, in transactions of so many milliseconds if that is given.

    Its records have this size, or are lines of this file in random order.
    """
    records = ("--payload-file", str(size)) if isinstance(size, Path) else ("--record-size", str(size))
    settings = [f"{name}={value}" for name, value in client_settings.items()]
    command = [
        *java_command("org.apache.kafka.tools.ProducerPerformance", jvm_options=CLIENT_JVM),
        *("--topic", topic, "--num-records", str(count), *records, "--throughput", "-1"),
        *(() if transaction_ms is None else ("--transaction-duration-ms", str(transaction_ms))),
        *("--bootstrap-server", broker.bootstrap_servers, "--command-property", *settings),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    found = _RESULT.findall(done.stdout)
    assert found, done.stdout + done.stderr
    sent, rate, latency_ms, latency_ms_p99 = found[-1]
    assert int(sent) == count, done.stdout + done.stderr
    return Produced(float(rate), float(latency_ms), float(latency_ms_p99))


def consume_in_group(broker: RunningBroker, topic: str, count: int, group: str) -> Consumed:
    """Run ConsumerPerformance over the whole topic."""
    command = [
        *java_command("org.apache.kafka.tools.ConsumerPerformance", jvm_options=CLIENT_JVM),
        *("--topic", topic, "--num-records", str(count), "--group", group, "--timeout", "60000", "--hide-header"),
        *("--bootstrap-server", broker.bootstrap_servers),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    # Start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetched MB/s, fetched records/s.
    rows = [line.split(", ") for line in done.stdout.splitlines() if line.count(", ") == 9]
    assert rows, done.stdout + done.stderr
    figures = rows[-1]
    assert int(figures[4]) >= count, done.stdout + done.stderr
    return Consumed(float(figures[5]), float(figures[9]), float(figures[6]))


def consume(broker: RunningBroker, topic: str, count: int, consumers: int = 1) -> float:
    """Records a second of consumers that each read the whole topic from its beginning, all of them together."""
    return float(_our_program(CONSUMER, broker, topic, str(count), str(consumers)))


def copy_exactly_once(broker: RunningBroker, source: str, target: str, *, warm_up: int, count: int, each: int) -> float:
    """Records a second that one copier moves in transactions of `each` records, after a warm-up."""
    return float(_our_program(COPIER, broker, source, target, str(warm_up), str(count), str(each)))


def _our_program(source: Path, broker: RunningBroker, *arguments: str) -> str:
    command = [
        require("java"),
        *CLIENT_JVM,
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        f"{jar_directory()}/*",
        str(source),
        broker.bootstrap_servers,
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
