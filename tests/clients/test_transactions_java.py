"""Transactions with Apache Kafka's own tools: its producer, its copier, its administrators' command, its log reader.

Every claim holds for Apache Kafka too (`--against both`).
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.clients.test_transactions import PATIENCE_S, create, producer, read_to_end, transaction, write
from tests.support.apache_kafka import dump_log_segments, java_command, run_tool
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.clients.reference import Reference
    from tests.support.apache_kafka import ApacheKafka
    from tests.support.millstream_process import MillstreamProcess
    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

# A JVM for each look at it: it must not be over before.
OPEN_FOR_LONG = {"transaction.timeout.ms": 600_000}


def transactions(broker: RunningBroker, *arguments: str) -> list[dict[str, str]]:
    """The rows of kafka-transactions, by column."""
    said = run_tool(
        "TransactionsCommand", "--bootstrap-server", broker.bootstrap_servers, *arguments, check=True
    ).stdout
    head, *rows = [line for line in said.splitlines() if line.strip()]
    columns = head.split()
    return [dict(zip(columns, row.split(), strict=False)) for row in rows]


def row_of(broker: RunningBroker, transactional_id: str, *arguments: str) -> dict[str, str]:
    (found,) = [row for row in transactions(broker, *arguments) if row["TransactionalId"] == transactional_id]
    return found


def test_transactions_are_listed_and_described(broker: RunningBroker, topic: str) -> None:
    made = producer(broker, topic, **OPEN_FOR_LONG)
    made.begin_transaction()
    write(made, topic, "value")
    listed = row_of(broker, topic, "list")
    assert listed["TransactionState"] == "Ongoing"
    (described,) = transactions(broker, "describe", "--transactional-id", topic)
    assert described["ProducerId"] == listed["ProducerId"]
    assert described["TransactionState"] == "Ongoing"
    assert described["TopicPartitions"] == f"{topic}-0"
    (writing,) = transactions(broker, "describe-producers", "--topic", topic, "--partition", "0")
    assert writing["ProducerId"] == listed["ProducerId"]
    assert writing["CurrentTransactionStartOffset"] == "0"
    made.abort_transaction(PATIENCE_S)
    wait_until(lambda: row_of(broker, topic, "list")["TransactionState"] == "CompleteAbort", "the end", within_s=120)
    (written,) = transactions(broker, "describe-producers", "--topic", topic, "--partition", "0")
    assert written["CurrentTransactionStartOffset"] == "None"


def test_a_transaction_is_aborted_by_an_administrator(broker: RunningBroker, topic: str) -> None:
    made = producer(broker, topic, **OPEN_FOR_LONG)
    made.begin_transaction()
    write(made, topic, "hangs")
    said = run_tool(
        "TransactionsCommand",
        "--bootstrap-server",
        broker.bootstrap_servers,
        *("abort", "--topic", topic, "--partition", "0", "--start-offset", "0"),
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert read_to_end(broker, topic) == []
    (writing,) = transactions(broker, "describe-producers", "--topic", topic, "--partition", "0")
    assert writing["CurrentTransactionStartOffset"] == "None"


def test_nothing_hangs(broker: RunningBroker, topic: str) -> None:
    made = producer(broker, topic)
    transaction(made, topic, "value")
    (broker_id,) = re.findall(r"\(id: (\d+)", run_tool(
        "BrokerApiVersionsCommand", "--bootstrap-server", broker.bootstrap_servers, check=True
    ).stdout)  # fmt: skip
    assert transactions(broker, "find-hanging", "--broker-id", broker_id, "--topic", topic) == []


def test_the_performance_tool_writes_in_transactions(broker: RunningBroker, topic: str) -> None:
    said = run_tool(
        "ProducerPerformance",
        *("--topic", topic, "--num-records", "5000", "--record-size", "100", "--throughput", "-1"),
        *("--transactional-id", topic, "--transaction-duration-ms", "50"),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap_servers}"),
        check=True,
    ).stdout
    assert "5000 records sent" in said
    assert len(read_to_end(broker, topic)) == 5000


def test_the_copier_copies_exactly_once(broker: RunningBroker, reference: Reference, fresh_name: str) -> None:
    source, target = f"{fresh_name}-in", f"{fresh_name}-out"
    for name in (source, target):
        reference.create_topic(name)
    made = producer(broker, f"{fresh_name}-filler")
    values = [str(number) for number in range(200)]
    made.begin_transaction()
    for value in values:
        made.produce(source, value.encode())
    made.commit_transaction(PATIENCE_S)
    said = run_tool(
        "TransactionalMessageCopier",
        *("--broker-list", broker.bootstrap_servers, "--transactional-id", f"{fresh_name}-copier"),
        *("--consumer-group", f"{fresh_name}-group", "--input-topic", source, "--input-partition", "0"),
        *("--output-topic", target, "--transaction-size", "20", "--max-messages", "200", "--enable-random-aborts"),
        timeout_s=180,
        check=True,
    ).stdout
    progress = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert progress[-1]["consumed"] == 200
    assert read_to_end(broker, target) == values


def test_the_log_of_transactions_is_read_by_apache_kafka(own_broker: MillstreamProcess | ApacheKafka) -> None:
    create(own_broker, "t", 3)
    made = producer(own_broker, "copier")
    transaction(made, "t", "a", "b", "c")
    transaction(made, "t", "d", commit=False)
    own_broker.stop()
    files = [
        path
        for path in sorted(own_broker.data_directory.glob("__transaction_state-*/*.log"))
        if path.stat().st_size > 0
    ]
    dumped = dump_log_segments(files, "--transaction-log-decoder", "--deep-iteration")
    assert dumped.stderr == ""
    states = [int(state) for state in re.findall(r'"transactionStatus":(\d)', dumped.stdout)]
    assert states[0] == 0
    assert [state for state in states if state in (2, 3, 4, 5)] == [2, 4, 3, 5]
    assert '{"type":"0","data":{"transactionalId":"copier"}}' in dumped.stdout
    data = sorted(own_broker.data_directory.glob("t-*/*.log"))
    marks = re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: \d+", dump_log_segments(data, "--deep-iteration").stdout)
    assert sorted(marks) == ["ABORT", "COMMIT", "COMMIT", "COMMIT"]


def test_a_java_producer_is_fenced_by_another_client(broker: RunningBroker, topic: str) -> None:
    """ProducerPerformance runs with the id while librdkafka takes it over."""
    command = [
        *java_command("org.apache.kafka.tools.ProducerPerformance"),
        *("--topic", topic, "--num-records", "1000000", "--record-size", "100", "--throughput", "500"),
        *("--transactional-id", topic, "--transaction-duration-ms", "300"),
        *("--producer-props", f"bootstrap.servers={broker.bootstrap_servers}"),
    ]
    watcher = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": topic, "log_level": 0})
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tool:
        try:
            wait_until(
                lambda: watcher.get_watermark_offsets(TopicPartition(topic, 0))[1] > 0,
                "its first records",
                within_s=120,
            )
            heir = producer(broker, topic)
            said, _ = tool.communicate(timeout=180)
        finally:
            tool.kill()
            watcher.close()
    assert re.search("ProducerFenced|old epoch", said), said
    transaction(heir, topic, "the heir's")
    assert read_to_end(broker, topic)[-1] == "the heir's"
