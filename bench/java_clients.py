"""Apache Kafka's own clients as loads: its perf tool for producing, and its consumer with partitions assigned by hand.

`ConsumerPerformance` reads in a group; until the broker has groups, a small Java program assigns the partitions.
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
_RESULT = re.compile(r"(\d+) records sent, ([\d.]+) records/sec .*? ([\d.]+) ms avg latency.* (\d+) ms 99th")
# The same for both contenders: a client with room, compiled by both of the JVM's compilers.
CLIENT_JVM = ("-Xmx512m", "-Xms512m", "-XX:+UseG1GC")


class Produced(NamedTuple):
    """What ProducerPerformance said at its end."""

    records_per_s: float
    latency_ms: float
    latency_ms_p99: float


def produce(broker: RunningBroker, topic: str, *, count: int, size: int, client_settings: dict[str, str]) -> Produced:
    """Run ProducerPerformance as fast as it goes."""
    settings = [f"{name}={value}" for name, value in client_settings.items()]
    command = [
        *java_command("org.apache.kafka.tools.ProducerPerformance", jvm_options=CLIENT_JVM),
        *("--topic", topic, "--num-records", str(count), "--record-size", str(size), "--throughput", "-1"),
        *("--bootstrap-server", broker.bootstrap_servers, "--command-property", *settings),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    found = _RESULT.findall(done.stdout)
    assert found, done.stdout + done.stderr
    sent, rate, latency_ms, latency_ms_p99 = found[-1]
    assert int(sent) == count, done.stdout + done.stderr
    return Produced(float(rate), float(latency_ms), float(latency_ms_p99))


def consume(broker: RunningBroker, topic: str, count: int) -> float:
    """Records a second of one consumer that reads the whole topic from its beginning."""
    command = [
        require("java"),
        *CLIENT_JVM,
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        f"{jar_directory()}/*",
        str(CONSUMER),
        broker.bootstrap_servers,
        topic,
        str(count),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr
    return float(done.stdout)
