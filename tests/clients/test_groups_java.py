"""Apache Kafka's own tools and groups: what administrators run, and the consumers that come with it.

A tool prints what it was told, so a claim here is about its words. Every one of them holds for Apache Kafka too
(`--against both`).
"""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.members import ALL_PROGRAMS
from tests.clients.members.member import Member, share
from tests.support.apache_kafka import run_tool
from tests.support.batches import Record
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.clients.reference import Reference
    from tests.support.running import RunningBroker

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.slow]

GROUPS = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
CONSOLE = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONFLUENT = ALL_PROGRAMS[0]


def groups(broker: RunningBroker, *arguments: str) -> str:
    done = run_tool(GROUPS, "--bootstrap-server", broker.bootstrap_servers, *arguments)
    return done.stdout + done.stderr


def rows(broker: RunningBroker, *arguments: str) -> list[dict[str, str]]:
    """A table of the tool's, row by row; sentences before it, and what its client logs besides, are left out."""
    printed = run_tool(GROUPS, "--bootstrap-server", broker.bootstrap_servers, *arguments).stdout
    lines = [line for line in printed.splitlines() if line.strip()]
    head = next((number for number, line in enumerate(lines) if line.startswith("GROUP")), len(lines))
    return [dict(zip(lines[head].split(), line.split(), strict=False)) for line in lines[head + 1 :]]


@pytest.fixture
def written(reference: Reference, fresh_name: str) -> str:
    """A topic with three partitions, and five records in each."""
    reference.create_topic(fresh_name, partitions=3)
    for partition in range(3):
        records = [Record(f"{partition}-{number}".encode(), None, (), int(time.time() * 1000)) for number in range(5)]
        reference.produce(fresh_name, records, partition=partition)
    return fresh_name


@pytest.fixture
def group(broker: RunningBroker, written: str) -> Iterator[tuple[str, Member]]:
    """A group with one member, which has read everything and said so."""
    name = f"group-of-{written}"
    with Member(CONFLUENT, broker.bootstrap_servers, name, [written]) as member:
        share([member], [(written, partition) for partition in range(3)])
        wait_until(lambda: len(member.reads) == 15, "all records", within_s=90)
        wait_until(lambda: lags(broker, name) == ["0", "0", "0"], "their commit", within_s=120)
        yield name, member


def lags(broker: RunningBroker, name: str) -> list[str]:
    return [row.get("LAG", "") for row in rows(broker, "--describe", "--group", name)]


def test_groups_are_listed_with_type_and_state(broker: RunningBroker, group: tuple[str, Member]) -> None:
    name, member = group
    assert name in groups(broker, "--list").split()
    listed = groups(broker, "--list", "--state", "Stable", "--type", "classic")
    assert re.search(rf"{name}\s+Classic\s+Stable", listed), listed
    member.leave()
    assert name not in groups(broker, "--list", "--state", "Stable")
    assert name in groups(broker, "--list", "--state", "Empty")


def test_a_group_is_described(broker: RunningBroker, group: tuple[str, Member], written: str) -> None:
    name, _ = group
    found = rows(broker, "--describe", "--group", name)
    assert [(row["TOPIC"], row["CURRENT-OFFSET"], row["LOG-END-OFFSET"], row["LAG"]) for row in found] == [
        (written, "5", "5", "0")
    ] * 3
    assert {row["HOST"] for row in found} == {"/127.0.0.1"}
    assert {row["CLIENT-ID"] for row in found} == {"rdkafka"}


def test_the_members_of_a_group_are_described(broker: RunningBroker, group: tuple[str, Member], written: str) -> None:
    name, _ = group
    described = groups(broker, "--describe", "--group", name, "--members", "--verbose")
    assert re.search(rf"{name}\s+rdkafka-[0-9a-f-]+\s+/127\.0\.0\.1\s+rdkafka\s+3\s", described), described
    assert f"{written}:0,1,2" in described


def test_the_state_of_a_group_is_described(broker: RunningBroker, group: tuple[str, Member]) -> None:
    name, _ = group
    described = groups(broker, "--describe", "--group", name, "--state")
    assert re.search(r"range\s+Stable\s+1\s*$", described.strip()), described


def test_a_group_with_members_is_neither_deleted_nor_reset(
    broker: RunningBroker, group: tuple[str, Member], written: str
) -> None:
    name, _ = group
    assert "GroupNotEmptyException" in groups(broker, "--delete", "--group", name)
    reset = groups(broker, "--reset-offsets", "--group", name, "--topic", written, "--to-earliest", "--execute")
    assert "Assignments can only be reset if the group" in reset


def test_offsets_of_an_empty_group_are_reset_and_read_from(
    broker: RunningBroker, group: tuple[str, Member], written: str
) -> None:
    name, member = group
    member.leave()
    arguments = ("--reset-offsets", "--group", name, "--topic", written)
    plan = rows(broker, *arguments, "--shift-by", "-2", "--dry-run")
    assert [row["NEW-OFFSET"] for row in plan] == ["3", "3", "3"]
    assert lags(broker, name) == ["0", "0", "0"], "it was a dry run"
    groups(broker, *arguments, "--to-offset", "4", "--execute")
    assert lags(broker, name) == ["1", "1", "1"]
    with Member(CONFLUENT, broker.bootstrap_servers, name, [written]) as back:
        wait_until(
            lambda: sorted(seen.value for seen in back.reads) == ["0-4", "1-4", "2-4"], "the last of each", within_s=90
        )


def test_an_empty_group_is_deleted_with_its_offsets(
    broker: RunningBroker, group: tuple[str, Member], written: str
) -> None:
    name, member = group
    member.leave()
    assert f"Deletion of requested consumer groups ('{name}') was successful" in groups(
        broker, "--delete", "--group", name
    )
    assert name not in groups(broker, "--list").split()
    with Member(CONFLUENT, broker.bootstrap_servers, name, [written]) as back:
        wait_until(lambda: len(back.reads) == 15, "everything anew", within_s=90)


def test_a_group_that_does_not_exist_is_not_described(broker: RunningBroker, fresh_name: str) -> None:
    described = groups(broker, "--describe", "--group", fresh_name)
    assert "not found" in described or "does not exist" in described, described


def test_the_console_consumer_goes_on_where_its_group_was(broker: RunningBroker, written: str) -> None:
    arguments = ("--bootstrap-server", broker.bootstrap_servers, "--topic", written, "--group", f"group-of-{written}")
    first = run_tool(CONSOLE, *arguments, "--from-beginning", "--max-messages", "9", check=True).stdout.split()
    rest = run_tool(CONSOLE, *arguments, "--max-messages", "6", "--timeout-ms", "60000", check=True).stdout.split()
    assert sorted(first + rest) == sorted(f"{partition}-{number}" for partition in range(3) for number in range(5))


def test_the_performance_consumer_counts_what_it_read(broker: RunningBroker, written: str) -> None:
    done = run_tool(
        "ConsumerPerformance",
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", written, "--num-records", "15"),
        *("--group", f"group-of-{written}", "--timeout", "60000", "--hide-header"),
        check=True,
    )
    fields = [field.strip() for field in done.stdout.strip().splitlines()[-1].split(",")]
    assert fields[4] == "15", done.stdout


def test_the_offsets_topic_is_read_by_apache_kafkas_formatter(broker: RunningBroker, group: tuple[str, Member]) -> None:
    name, _ = group
    # It reads until nothing has come for a while, which a slow start must not be taken for.
    mine = read_by_formatter(broker, name, "5000") or read_by_formatter(broker, name, "60000")
    assert mine[0]["data"]["members"] == []
    assert mine[-1]["version"] == 3
    assert mine[-1]["data"]["protocol"] == "range"
    assert len(mine[-1]["data"]["members"]) == 1


def read_by_formatter(broker: RunningBroker, group: str, idle_ms: str) -> list[Any]:
    printed = run_tool(
        CONSOLE,
        *("--bootstrap-server", broker.bootstrap_servers, "--topic", "__consumer_offsets", "--from-beginning"),
        *("--formatter", "org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter", "--timeout-ms", idle_ms),
    ).stdout
    read = json.loads("[" + printed.replace('}{"key"', '},{"key"') + "]")
    return [each["value"] for each in read if each["key"]["data"]["group"] == group and each["value"] is not None]
