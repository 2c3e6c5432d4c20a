"""Kafka's tools by their names: the same words print the same lines.

The comparison runs both on one cluster of Apache Kafka's: what ours prints there is what Kafka's own tool prints.
"""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import environment, run_command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run, Until
    from tests.support.apache_kafka import ApacheKafka
    from tests.support.running import RunningBroker

CLASSES = {
    "kafka-topics": "TopicCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-producer": "ConsoleProducer",
    "kafka-console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
}


def test_the_first_steps_of_every_tutorial_work(ok: Run, until: Until, cluster: RunningBroker, fresh_name: str) -> None:
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    create = ("--create", "--topic", fresh_name, "--replication-factor", "1", "--partitions", "3")
    assert (
        ok("kafka-topics", *create, "--config", "retention.ms=100000000", *server).out
        == f"Created topic {fresh_name}.\n"
    )
    until(lambda ended: fresh_name in ended.lines, "kafka-topics.sh", "--list", *server)
    ok(
        "kafka-console-producer.sh",
        *("--topic", fresh_name, "--property", "parse.key=true", "--property", "key.separator=:"),
        *("--broker-list", cluster.bootstrap_servers),
        stdin="a:1\nb:2\n",
    )
    read = ok("kafka-console-consumer", "--topic", fresh_name, "--from-beginning", "--max-messages", "2", *server)
    assert sorted(read.lines) == ["1", "2"]
    assert "Processed a total of 2 messages" in read.err
    ok("kafka-configs", "--alter", "--topic", fresh_name, "--add-config", "max.message.bytes=5000", *server)
    describe = ("kafka-configs", "--describe", "--topic", fresh_name, *server)
    until(lambda ended: "max.message.bytes=5000" in ended.out, *describe)
    ok("kafka-topics", "--delete", "--topic", fresh_name, *server)


def test_zookeeper_is_answered_with_the_modern_command() -> None:
    ended = run_command(
        "kafka-topics", "--zookeeper", "localhost:2181", "--create", "--topic", "x", "--partitions", "3"
    )
    assert ended.code == 2
    assert "kafka-topics --bootstrap-server localhost:9092 --create --topic x --partitions 3" in ended.err


def compared(kafka: ApacheKafka, tool: str, *words: str) -> str:
    """What both print to standard output; they must come to agree, exit code included.

    A change is answered before the broker shows it, so the first of the two may still see the state before it. What
    differs for good is shown by the assertion at the end.
    """
    server = ("--bootstrap-server", kafka.bootstrap_servers)

    def both() -> tuple[tuple[str, int], tuple[str, int]]:
        theirs = kafka.run_tool(CLASSES[tool], *server, *words, input="")
        ours = run_command(tool, *server, *words)
        # Theirs tells errors and advice on standard output too; what a script reads is the rest.
        said = re.sub(r"^(Error while executing|Option --|Warning: --).*\n", "", theirs.stdout, flags=re.MULTILINE)
        return (ours.out, ours.code), (said, theirs.returncode)

    for _ in range(3):
        ours, theirs = both()
        if ours == theirs:
            break
    assert ours == theirs
    return ours[0]


@pytest.mark.java
@pytest.mark.slow
def test_topics_prints_what_kafkas_prints(apache_kafka: ApacheKafka, fresh_name: str) -> None:
    settings = ("--config", "retention.ms=5000", "--config", "flush.ms=7", "--config", "cleanup.policy=compact")
    create = ("--create", "--topic", fresh_name, "--partitions", "3", *settings)
    server = ("--bootstrap-server", apache_kafka.bootstrap_servers)
    assert run_command("kafka-topics", *server, *create).code == 0
    described = compared(apache_kafka, "kafka-topics", "--describe", "--topic", fresh_name)
    assert described.count("\n") == 4
    for words in (
        ("--list",),
        ("--list", "--topic", f"{fresh_name[:5]}.*"),
        ("--describe", "--topic", fresh_name, "--topics-with-overrides"),
        ("--describe", "--topic", fresh_name, "--under-replicated-partitions"),
        ("--describe", "--topic", fresh_name, "--at-min-isr-partitions"),
        ("--describe", "--topic", "nowhere"),
        ("--delete", "--topic", "nowhere"),
        ("--delete", "--topic", "nowhere", "--if-exists"),
        ("--create", "--topic", fresh_name),
        ("--create", "--topic", fresh_name, "--if-not-exists"),
        ("--alter", "--topic", fresh_name, "--partitions", "2"),
    ):
        compared(apache_kafka, "kafka-topics", *words)


@pytest.mark.java
@pytest.mark.slow
def test_configs_prints_what_kafkas_prints(apache_kafka: ApacheKafka, fresh_name: str) -> None:
    server = ("--bootstrap-server", apache_kafka.bootstrap_servers)
    assert run_command("kafka-topics", *server, "--create", "--topic", fresh_name).code == 0
    for words in (
        ("--alter", "--topic", fresh_name, "--add-config", "cleanup.policy=[compact,delete],max.message.bytes=5000"),
        ("--describe", "--topic", fresh_name),
        ("--describe", "--entity-type", "topics", "--entity-name", fresh_name, "--all"),
        ("--alter", "--topic", fresh_name, "--delete-config", "max.message.bytes"),
        ("--describe", "--topic", fresh_name),
        ("--describe", "--topic", "nowhere"),
        ("--describe", "--entity-type", "brokers", "--entity-default"),
        ("--describe", "--entity-type", "brokers"),
    ):
        compared(apache_kafka, "kafka-configs", *words)


@pytest.mark.java
@pytest.mark.slow
def test_the_console_tools_understand_each_other(apache_kafka: ApacheKafka, fresh_name: str) -> None:
    server = ("--bootstrap-server", apache_kafka.bootstrap_servers)
    assert run_command("kafka-topics", *server, "--create", "--topic", fresh_name, "--partitions", "5").code == 0
    reading = ("--property", "parse.key=true", "--property", "parse.headers=true", "--property", "null.marker=NULL")
    lines = "".join(f"h:1,i:2\tkey-{number}\tvalue\n" for number in range(20)) + "NULL\tkey-1\tNULL\n"
    words = (*server, "--topic", fresh_name, *reading)
    assert run_command("kafka-console-producer", *words, stdin=lines).code == 0
    apache_kafka.run_tool("ConsoleProducer", *words, input=lines, check=True)
    written = run_command("consume", fresh_name, *server, "--from-beginning", "--exit", "-f", r"%p\n").lines
    assert len(written) == 42
    # Without print.epoch: Kafka's tool prints NOT_PRESENT there, ours the epoch.
    shown = ("timestamp", "partition", "offset", "headers", "key", "value")
    printing = [part for name in shown for part in ("--property", f"print.{name}=true")]
    for partition in sorted(set(written)):
        count = str(written.count(partition))
        place = ("--topic", fresh_name, "--partition", partition, "--offset", "earliest", "--max-messages", count)
        printed = compared(apache_kafka, "kafka-console-consumer", *place, *printing)
        # Ours wrote the first half and Java's the second: every key must have stayed in its partition.
        keys = [line.split("\t")[4] for line in printed.splitlines()]
        half = len(keys) // 2
        assert sorted(keys[:half]) == sorted(keys[half:])


def test_shims_put_the_tools_on_the_path(millstream: RunningBroker, tmp_path: Path) -> None:
    assert run_command("shims", str(tmp_path / "bin")).code == 0
    for name in ("kafka-topics", "kafka-topics.sh"):
        done = subprocess.run(
            [tmp_path / "bin" / name, "--list", "--bootstrap-server", millstream.bootstrap_servers],
            env=environment(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_shims_leave_the_files_of_others_alone(tmp_path: Path) -> None:
    (tmp_path / "kafka-topics").write_text("#!/bin/sh\nexec java ...\n")
    assert run_command("shims", str(tmp_path)).code == 2
    assert run_command("shims", str(tmp_path), "--force").code == 0
