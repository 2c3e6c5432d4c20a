"""Apache Kafka's own test programs and group tools: what its system tests drive, in groups and in transactions."""

from __future__ import annotations

import json
import re
import subprocess
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from tests.support.apache_kafka import java_command, run_tool
from tests.support.topics import create_topics, in_the_middle, read_committed, write
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
EARLIEST = ("--reset-policy", "earliest")
COPIED = 2_000


def run(broker: RunningBroker, tool: str, *arguments: str) -> str:
    return run_tool(tool, "--bootstrap-server", broker.bootstrap_servers, *arguments, check=True).stdout


def events(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def values_of(broker: RunningBroker, topic: str, partitions: int) -> list[str]:
    return sorted((seen.value or b"").decode() for seen in read_committed(broker, topic, partitions))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_the_verifiable_producer_says_was_acked_the_verifiable_consumer_reads(
    broker: RunningBroker, fresh_name: str, protocol: str
) -> None:
    create_topics(broker, fresh_name, partitions=3)
    produced = events(
        run(broker, "VerifiableProducer", "--topic", fresh_name, "--max-messages", "1000", "--acks", "-1")
    )
    acked = [event["value"] for event in produced if event["name"] == "producer_send_success"]
    assert len(acked) == 1000
    group = ("--topic", fresh_name, "--group-id", f"group-of-{fresh_name}", "--group-protocol", protocol)
    consumed = events(run(broker, "VerifiableConsumer", *group, "--max-messages", "1000", "--verbose", *EARLIEST))
    read = [event["value"] for event in consumed if event["name"] == "record_data"]
    assert sorted(read) == sorted(acked)
    commits = [event for event in consumed if event["name"] == "offsets_committed"]
    assert commits
    assert all(event["success"] for event in commits)
    described = run(broker, GROUPS, "--describe", "--group", f"group-of-{fresh_name}")
    assert sum(int(offset) for offset in re.findall(rf"{fresh_name}\s+\d\s+(\d+)\s", described)) == 1000


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_console_consumer_goes_on_where_its_group_was(broker: RunningBroker, fresh_name: str, protocol: str) -> None:
    create_topics(broker, fresh_name, partitions=1)
    write(broker, fresh_name, ["one", "two", "three"])
    place = ("--topic", fresh_name, "--group", f"group-of-{fresh_name}", "--timeout-ms", "60000")
    protocol_property = ("--command-property", f"group.protocol={protocol}")
    first = run(broker, CONSOLE_CONSUMER, *place, "--from-beginning", "--max-messages", "2", *protocol_property)
    assert first.split() == ["one", "two"]
    again = run(broker, CONSOLE_CONSUMER, *place, "--max-messages", "1", *protocol_property)
    assert again.split() == ["three"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_perf_tool_consumes_in_a_group(broker: RunningBroker, fresh_name: str, protocol: str) -> None:
    create_topics(broker, fresh_name, partitions=6)
    arguments = ("--num-records", "50000", "--record-size", "100", "--throughput", "-1")
    run(broker, "ProducerPerformance", "--topic", fresh_name, *arguments)
    settings = ("--command-property", f"group.protocol={protocol}")
    said = run(
        broker, "ConsumerPerformance", "--topic", fresh_name, "--num-records", "50000", "--hide-header", *settings
    )
    assert int(said.strip().splitlines()[-1].split(", ")[4]) == 50_000


def test_transactional_copiers_copy_each_record_once(own_broker: RunningBroker, tmp_path: Path) -> None:
    """Two copiers in one group, with aborts thrown in; one is killed and comes back, and so does the broker."""
    create_topics(own_broker, "input", "output", partitions=2)
    values: list[str] = []

    def feed(count: int) -> int:
        more = [str(number) for number in range(len(values), len(values) + count)]
        write(own_broker, "input", more)
        values.extend(more)
        return count

    feed(COPIED)
    command = java_command("org.apache.kafka.tools.TransactionalMessageCopier")
    place = ("--broker-list", own_broker.bootstrap_servers, "--input-topic", "input", "--output-topic", "output")
    how = ("--consumer-group", "copiers", "--transaction-size", "25", "--enable-random-aborts", "--group-mode")

    with ExitStack() as running:

        def start(name: str) -> tuple[subprocess.Popen[bytes], Path]:
            said = tmp_path / f"{name}.out"
            arguments = (*place, *how, "--use-group-metadata", "--input-partition", "-1", "--transactional-id", name)
            with said.open("ab") as output:
                process = subprocess.Popen([*command, *arguments], stdout=output, stderr=subprocess.STDOUT)
            running.callback(process.wait)
            running.callback(process.kill)
            return process, said

        def copied() -> int:
            return len(read_committed(own_broker, "output", 2))

        def copied_all() -> bool:
            for process, said in copiers:
                assert process.poll() in (None, 0), said.read_text()[-3000:]
            return copied() >= len(values)

        copiers = [start("first"), start("second")]
        in_the_middle(own_broker, "output", 2, before=0, of=COPIED, feed=feed)
        copiers.pop()[0].kill()
        own_broker.kill()
        own_broker.start()
        copiers.append(start("second"))
        wait_until(copied_all, "all copies", within_s=240, every_s=0.2)
        assert values_of(own_broker, "output", 2) == sorted(values)


def test_groups_are_listed_described_reset_and_deleted(broker: RunningBroker, fresh_name: str) -> None:
    create_topics(broker, fresh_name, partitions=1)
    write(broker, fresh_name, ["one", "two", "three"])
    group = f"group-of-{fresh_name}"
    place = ("--topic", fresh_name, "--group", group, "--timeout-ms", "60000")
    run(broker, CONSOLE_CONSUMER, *place, "--from-beginning", "--max-messages", "2")
    assert group in run(broker, GROUPS, "--list").split()
    assert re.search(rf"{group}\s+{fresh_name}\s+0\s+2\s+3\s+1\s", run(broker, GROUPS, "--describe", "--group", group))
    assert re.search(rf"{group}\s.*Empty\s+0", run(broker, GROUPS, "--describe", "--group", group, "--state"))
    reset = ("--reset-offsets", "--group", group, "--topic", fresh_name, "--to-earliest", "--execute")
    assert re.search(rf"{group}\s+{fresh_name}\s+0\s+0\s", run(broker, GROUPS, *reset))
    assert run(broker, CONSOLE_CONSUMER, *place, "--max-messages", "3").split() == ["one", "two", "three"]
    assert "was successful" in run(broker, GROUPS, "--delete", "--group", group)
    assert group not in run(broker, GROUPS, "--list").split()


def test_transactions_are_listed_described_and_ended_by_force(broker: RunningBroker, fresh_name: str) -> None:
    create_topics(broker, fresh_name, partitions=1)
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "transactional.id": fresh_name,
            # Longer than a few tools take: nobody else ends it.
            "transaction.timeout.ms": 600_000,
        }
    )
    producer.init_transactions(90)
    producer.begin_transaction()
    producer.produce(fresh_name, value=b"never seen")
    producer.flush(90)
    tool = "TransactionsCommand"
    assert re.search(rf"{fresh_name}\s+\d+\s+\d+\s+Ongoing", run(broker, tool, "list"))
    described = run(broker, tool, "describe", "--transactional-id", fresh_name)
    assert re.search(rf"{fresh_name}\s.*Ongoing.*{fresh_name}-0", described)
    producers = run(broker, tool, "describe-producers", "--topic", fresh_name, "--partition", "0")
    assert re.search(r"^\d+\s+0\s+-1\s+0\s+\d+\s+0\s*$", producers, re.MULTILINE), producers
    run(broker, tool, "forceTerminateTransaction", "--transactionalId", fresh_name)
    # The tool asks for a new epoch until it gets one: then the old transaction is over, and a new one not begun.
    assert re.search(rf"{fresh_name}\s+\d+\s+\d+\s+Empty", run(broker, tool, "list"))
    assert values_of(broker, fresh_name, 1) == []
