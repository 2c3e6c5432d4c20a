"""`kafka-consumer-groups`: the same words print the same lines as Kafka's own tool.

Rows that Kafka's tool prints in the order of a hash table are compared without their order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from millstream.client.groups import Committed, commit_offsets
from millstream.client.sync import SyncClient
from tests.cli.conftest import run_command
from tests.cli.group_scene import classic_members, new_members
from tests.support.apache_kafka import ApacheKafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Run
    from tests.support.running import RunningBroker

TOOL = "kafka-consumer-groups"
CLASS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


def compared(kafka: ApacheKafka, *words: str) -> str:
    """What both print to standard output, with the same exit code.

    At the latest the third time: a member that the machine has kept from its heartbeats may come and go in between.
    """
    server = ("--bootstrap-server", kafka.bootstrap_servers)
    for _ in range(3):
        theirs = kafka.run_tool(CLASS, *server, *words, input="")
        ours = run_command(TOOL, *server, *words)
        if (sorted(ours.lines), ours.code) == (sorted(theirs.stdout.splitlines()), theirs.returncode):
            break
    assert (sorted(ours.lines), ours.code) == (sorted(theirs.stdout.splitlines()), theirs.returncode), words
    # What is told beside the tables: that nobody is there, or that it is changing.
    for sentence in re.findall(r"^(?:Warning: )?Consumer group .*$", theirs.stderr, re.MULTILINE):
        assert sentence in ours.err
    return ours.out


@pytest.fixture(scope="module")
def own_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    """One of this file's own: `--all-groups` must not meet what other tests leave, least of all a nameless group."""
    with ApacheKafka(tmp_path_factory.mktemp("apache-kafka-of-groups")) as kafka:
        kafka.format()
        kafka.start()
        yield kafka
        kafka.stop()


@pytest.fixture
def client(own_kafka: ApacheKafka) -> Iterator[SyncClient]:
    with SyncClient({"bootstrap.servers": own_kafka.bootstrap_servers, "client.id": "new"}) as made:
        yield made


@pytest.fixture
def topic(own_kafka: ApacheKafka, fresh_name: str) -> str:
    """Two partitions, one of them with three records."""
    server = ("--bootstrap-server", own_kafka.bootstrap_servers)
    assert run_command("topic", "create", fresh_name, "--partitions", "2", *server).code == 0
    assert run_command("produce", fresh_name, "--partition", "0", *server, stdin="a\nb\nc\n").code == 0
    return fresh_name


@pytest.mark.java
@pytest.mark.slow
def test_every_kind_of_group_is_shown_as_kafkas_tool_shows_it(
    own_kafka: ApacheKafka, client: SyncClient, topic: str
) -> None:
    server = ("--bootstrap-server", own_kafka.bootstrap_servers)
    assert run_command("consume", topic, "--group", "classic", "--from-beginning", "--exit", *server).code == 0
    simple = ("group", "reset-offsets", "simple", "--topic", f"{topic}:0", "--to-offset", "1", "--execute", *server)
    assert run_command(*simple).code == 0
    with (
        classic_members(own_kafka.bootstrap_servers, "classic", [topic], 3),
        new_members(client, "new", [topic], ["first-member", "second-member", "idle-member"]),
    ):
        for words in (
            ("--list",),
            ("--list", "--state", "--type"),
            ("--list", "--state", "stable"),
            ("--list", "--type", "consumer"),
            ("--describe", "--all-groups"),
            ("--describe", "--group", "new", "--verbose"),
            ("--describe", "--group", "classic", "--group", "new", "--members"),
            ("--describe", "--all-groups", "--members", "--verbose"),
            ("--describe", "--all-groups", "--state", "--verbose"),
            ("--describe", "--group", "simple", "--state"),
            ("--describe", "--group", "nowhere"),
            ("--delete", "--group", "classic", "--group", "nowhere"),
            ("--delete-offsets", "--group", "classic", "--topic", topic),
            ("--reset-offsets", "--group", "classic", "--all-topics", "--to-earliest", "--dry-run"),
            ("--reset-offsets", "--all-groups", "--all-topics", "--to-current", "--dry-run"),
        ):
            compared(own_kafka, *words)
    # Kafka takes a commit for the group "", lists it, and refuses to describe it, and so all groups. It comes last
    # because such a group cannot be deleted either.
    client.run(commit_offsets, "", {(topic, 0): Committed(1)})
    assert "InvalidGroupIdException: The group id is invalid." in compared(own_kafka, "--describe", "--all-groups")


@pytest.mark.java
@pytest.mark.slow
def test_offsets_are_reset_and_deleted_as_kafkas_tool_does_it(
    own_kafka: ApacheKafka, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{topic},0,2\n{topic},1,99\n")
    scope = ("--reset-offsets", "--group", topic, "--topic", topic)
    for words in (
        (*scope, "--to-latest", "--execute"),
        (*scope, "--to-earliest", "--execute", "--export"),
        (*scope, "--to-offset", "2", "--dry-run"),
        (*scope, "--to-datetime", "2020-01-31T12:00:00.000", "--dry-run"),
        (*scope, "--to-datetime", "2120-01-31T12:00:00.000+01:00", "--dry-run"),
        (*scope, "--by-duration", "PT1H", "--dry-run"),
        (*scope, "--shift-by", "1", "--dry-run"),
        (*scope, "--group", "a, group", "--to-latest", "--dry-run", "--export"),
        ("--reset-offsets", "--group", topic, "--from-file", str(file), "--execute", "--export"),
        ("--reset-offsets", "--group", "other", "--group", "others", "--from-file", str(file), "--dry-run"),
        ("--describe", "--group", topic),
        ("--delete-offsets", "--group", topic, "--topic", f"{topic}:0", "--topic", "nowhere"),
        ("--delete-offsets", "--group", topic, "--topic", f"{topic}:9"),
        ("--delete-offsets", "--group", "nowhere", "--topic", topic),
    ):
        if "others" in words:
            # Theirs finds no plan for a group that lines don't name; ours says what the lines lack.
            assert run_command(TOOL, "--bootstrap-server", own_kafka.bootstrap_servers, *words).code == 2
            continue
        compared(own_kafka, *words)
    server = ("--bootstrap-server", own_kafka.bootstrap_servers)
    deleted = run_command(TOOL, *server, "--delete", "--group", topic)
    assert (deleted.code, deleted.out) == (
        0,
        f"Deletion of requested consumer groups ('{topic}') was successful.\n",
    )


def test_the_tool_of_every_tutorial_works(cluster: RunningBroker, ok: Run, fresh_name: str) -> None:
    server = ("--bootstrap-server", cluster.bootstrap_servers)
    ok("kafka-topics", "--create", "--topic", fresh_name, "--partitions", "1", *server)
    ok("kafka-console-producer", "--topic", fresh_name, *server, stdin="a\nb\nc\n")
    group = ("--group", f"{fresh_name}-group")
    reading = ("--topic", fresh_name, *group, *server)
    read = ok("kafka-console-consumer.sh", *reading, "--from-beginning", "--max-messages", "2")
    assert read.lines == ["a", "b"]
    assert ok("kafka-console-consumer", *reading, "--timeout-ms", "2000").lines == ["c"]
    assert group[1] in ok("kafka-consumer-groups.sh", *server, "--list").lines
    described = ok(TOOL, *server, "--describe", *group)
    assert described.lines[2].split()[:6] == [group[1], fresh_name, "0", "3", "3", "0"]
    assert "has no active members" in described.err
    moved = ok(TOOL, *server, "--reset-offsets", *group, "--topic", fresh_name, "--to-earliest", "--execute")
    assert moved.lines[2].split() == [group[1], fresh_name, "0", "0"]
    assert ok("kafka-console-consumer", *reading, "--timeout-ms", "2000").lines == ["a", "b", "c"]
    ok(TOOL, *server, "--delete", *group)
