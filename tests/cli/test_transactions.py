"""Transactions seen and ended from outside, by our words and by those of Kafka's tool."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin import raise_first
from millstream.client.admin.configs import Change, Operation, Resource, ResourceKind, alter_configs
from millstream.client.errors import ClientError
from millstream.client.produce import init_producer_id, produce
from millstream.client.sync import SyncClient
from millstream.records.building import encode_batch
from tests.cli.conftest import run_command
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Run, Until
    from tests.support.apache_kafka import ApacheKafka
    from tests.support.running import RunningBroker

CLASS = "TransactionsCommand"
VERIFICATION = "transaction.partition.verification.enable"
# From the next version on, partitions join a transaction by being written to; then it could not hang like this.
WITHOUT_IMPLICIT_PARTITIONS = 11
AN_HOUR_AND_A_HALF_MINUTE_MS = 3_630_000


@pytest.fixture
def client(cluster: RunningBroker) -> Iterator[SyncClient]:
    with SyncClient({"bootstrap.servers": cluster.bootstrap_servers}) as made:
        yield made


def write_in_transaction(client: SyncClient, name: str, topic: str, *, version_max: int, ago_ms: int = 0) -> int:
    """One record of a transaction that is never ended; its producer's id."""
    producer = client.run(init_producer_id, transactional_id=name, transaction_timeout_ms=600_000)
    record = (None, b"open", (), time.time_ns() // 1_000_000 - ago_ms)
    batch = encode_batch(
        [record], producer_id=producer.id, producer_epoch=producer.epoch, base_sequence=0, transactional=True
    )
    client.run(produce, {(topic, 0): batch}, transactional_id=name, version_max=version_max)
    return producer.id


def hang(client: SyncClient, name: str, topic: str) -> int:
    """A transaction that its coordinator knows nothing of: what a broker takes that does not ask."""
    brokers = Resource(ResourceKind.BROKER, "")
    raise_first(client.run(alter_configs, {brokers: [Change(VERIFICATION, "false")]}))
    try:

        def written() -> int | None:
            try:
                return (
                    write_in_transaction(
                        client,
                        name,
                        topic,
                        version_max=WITHOUT_IMPLICIT_PARTITIONS,
                        ago_ms=AN_HOUR_AND_A_HALF_MINUTE_MS,
                    )
                    + 1
                )
            except ClientError:
                # The setting has not arrived yet.
                return None

        return (wait_until(written, "a broker that does not ask") or 0) - 1
    finally:
        raise_first(client.run(alter_configs, {brokers: [Change(VERIFICATION, None, Operation.DELETE)]}))


def _without_duration(out: str) -> str:
    """The eighth column of `describe`."""
    return re.sub(r"^((?:\w[^\t]*\t){7})\d+ *(?=\t.+-\d)", r"\1N", out, flags=re.MULTILINE)


def compared(kafka: ApacheKafka, *words: str) -> None:
    """Both print the same, at the latest the third time.

    Between the two a minute may be full, or a transaction that another test left behind may come to its end.
    """
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    for _ in range(3):
        theirs = kafka.run_tool(CLASS, *server, *words, input="")
        ours = run_command("kafka-transactions", *server, *words)
        # In the order of a hash table there, and how long a transaction has been open depends on when one asks.
        shown, expected = (sorted(_without_duration(out).splitlines()) for out in (ours.out, theirs.stdout))
        if (shown, ours.code) == (expected, theirs.returncode):
            break
    assert (shown, ours.code) == (expected, theirs.returncode), words


@pytest.mark.java
@pytest.mark.slow
def test_transactions_are_shown_as_kafkas_tool_shows_them(apache_kafka: ApacheKafka, fresh_name: str) -> None:
    server = ("--bootstrap-server", apache_kafka.bootstrap_servers)
    assert run_command("topic", "create", fresh_name, *server).code == 0
    with SyncClient({"bootstrap.servers": apache_kafka.bootstrap_servers}) as client:
        write_in_transaction(client, f"{fresh_name}-open", fresh_name, version_max=12)
        hang(client, f"{fresh_name}-hanging", fresh_name)
        for words in (
            ("list",),
            ("list", "--transactional-id-pattern", f"{fresh_name}-o.*"),
            ("list", "--duration-filter", "1000000000"),
            ("describe", "--transactional-id", f"{fresh_name}-open"),
            ("describe", "--transactional-id", f"{fresh_name}-hanging"),
            ("describe", "--transactional-id", "nowhere"),
            ("describe-producers", "--topic", fresh_name, "--partition", "0"),
            ("find-hanging", "--topic", fresh_name),
            ("find-hanging", "--broker-id", "1"),
            ("find-hanging", "--topic", fresh_name, "--max-transaction-timeout", "100"),
            ("abort", "--topic", fresh_name, "--partition", "0", "--start-offset", "77"),
        ):
            compared(apache_kafka, *words)
        client.run(init_producer_id, transactional_id=f"{fresh_name}-open")


def test_an_open_transaction_is_listed_described_and_aborted(
    client: SyncClient, ok: Run, run: Run, until: Until, fresh_name: str
) -> None:
    ok("topic", "create", fresh_name)
    producer_id = write_in_transaction(client, fresh_name, fresh_name, version_max=12)
    (listed,) = json.loads(ok("transaction", "list", "--pattern", fresh_name, "--json").out)
    assert (listed["state"], listed["producer_id"]) == ("Ongoing", producer_id)
    assert json.loads(ok("transaction", "list", "--pattern", fresh_name, "--open-for", "1h", "--json").out) == []
    (described,) = json.loads(ok("transaction", "describe", fresh_name, "--json").out)
    assert (described["timeout_ms"], described["partitions"]) == (600_000, [f"{fresh_name}:0"])
    # It is its coordinator's, which will end it: nothing hangs.
    assert len(ok("transaction", "find-hanging", "--topic", fresh_name, "--silent-for", "0ms").lines) == 1
    committed = ("consume", fresh_name, "--from-beginning", "--exit", "--read-committed")
    assert ok(*committed).lines == []
    ok("transaction", "abort", fresh_name)
    (ended,) = json.loads(ok("transaction", "describe", fresh_name, "--json").out)
    assert (ended["state"], ended["partitions"]) == ("Empty", [])
    ok("produce", fresh_name, stdin="after\n")
    until(lambda ended: ended.lines == ["after"], *committed)
    refused = run("transaction", "describe", "nowhere")
    assert (refused.code, len(refused.err.splitlines())) == (1, 1)
    assert run("transaction", "abort", "nowhere").code == 1
    assert json.loads(ok("transaction", "list", "--pattern", "nowhere", "--json").out) == []


@pytest.mark.parametrize("tool", ["transaction", "kafka-transactions"])
def test_a_hanging_transaction_is_found_and_aborted(
    client: SyncClient, cluster: RunningBroker, ok: Run, run: Run, until: Until, fresh_name: str, tool: str
) -> None:
    ok("topic", "create", fresh_name)
    producer_id = hang(client, fresh_name, fresh_name)
    ok("produce", fresh_name, stdin="behind\n")
    committed = ("consume", fresh_name, "--from-beginning", "--exit", "--read-committed")
    assert ok(*committed).lines == []
    (found,) = json.loads(ok("transaction", "find-hanging", "--topic", fresh_name, "--json").out)
    assert (found["partition"], found["producer_id"], found["start_offset"]) == (0, producer_id, 0)
    assert found["silent_s"] >= 3_600
    place = ("--topic", fresh_name, "--partition", "0")
    if tool == "transaction":
        assert run("transaction", "abort", *place, "--start-offset", "5").code == 1
        ok("transaction", "abort", *place, "--start-offset", "0", "--dry-run")
        assert ok(*committed).lines == []
        ok("transaction", "abort", *place, "--start-offset", "0")
    else:
        server = ("--bootstrap-server", cluster.bootstrap_servers)
        ok("kafka-transactions.sh", *server, "abort", *place, "--start-offset", "0")
    until(lambda ended: ended.lines == ["behind"], *committed)
    assert len(ok("transaction", "find-hanging", "--topic", fresh_name).lines) == 1
