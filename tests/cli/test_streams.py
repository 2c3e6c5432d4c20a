"""`millstream streams reset`, and the same by the name of Kafka's tool, whose lines are the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from millstream.client.admin import raise_first
from millstream.client.admin.topics import NewTopic, create_topics
from millstream.client.groups import Committed, commit_offsets, committed_offsets
from millstream.client.produce import produce
from millstream.client.sync import SyncClient
from millstream.records.building import encode_batch
from tests.cli.conftest import run_command
from tests.cli.group_scene import classic_members

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.cli.conftest import Run, Until
    from tests.support.apache_kafka import ApacheKafka
    from tests.support.running import RunningBroker

TOOL = "kafka-streams-application-reset"
CLASS = "org.apache.kafka.tools.StreamsResetter"


def prepare(servers: str, application: str) -> tuple[str, str]:
    """What an application leaves behind: (input topic, topic between), internal topics, and offsets of its group."""
    source, between = f"{application}-in", f"{application}-between"
    batch = encode_batch([(None, value, (), 1_000) for value in (b"a", b"b", b"c")])
    with SyncClient({"bootstrap.servers": servers}) as client:
        raise_first(
            client.run(create_topics, [NewTopic(name, 2) for name in (source, between, *internal(application))])
        )
        client.run(produce, {(topic, 0): batch for topic in (source, between)})
        places = [(topic, index) for topic in (source, between) for index in (0, 1)]
        client.run(commit_offsets, application, {place: Committed(int(place[1] == 0)) for place in places})
    return source, between


def offsets(servers: str, application: str) -> dict[tuple[str, int], int]:
    with SyncClient({"bootstrap.servers": servers}) as client:
        return {place: each.offset for place, each in client.run(committed_offsets, application).items()}


def internal(application: str) -> list[str]:
    return [f"{application}-by-user-repartition", f"{application}-counts-changelog"]


def test_an_application_begins_again(
    cluster: RunningBroker, ok: Run, until: Until, fresh_name: str, tmp_path: Path
) -> None:
    servers = cluster.bootstrap_servers
    source, between = prepare(servers, fresh_name)
    (tmp_path / "query" / "offsets").mkdir(parents=True)
    (tmp_path / "query" / "metadata").write_text("{}")
    words = ("streams", "reset", "--application-id", fresh_name, "--input-topics", source)
    words += ("--intermediate-topics", between, "--checkpoint", str(tmp_path / "query"))
    before = offsets(servers, fresh_name)
    planned = ok(*words, "--dry-run")
    assert "nothing was changed" in planned.err
    assert offsets(servers, fresh_name) == before
    assert (tmp_path / "query").exists()
    assert ok(*words).out == planned.out
    assert offsets(servers, fresh_name) == {(source, 0): 0, (source, 1): 0, (between, 0): 3, (between, 1): 0}
    assert not (tmp_path / "query").exists()
    left = until(lambda ended: not set(internal(fresh_name)) & set(ended.out.split()), "topic", "list")
    assert {source, between} <= set(left.out.split())


def test_a_topic_that_is_not_there_stops_the_reset(millstream: RunningBroker, fresh_name: str) -> None:
    servers = millstream.bootstrap_servers
    source, _ = prepare(servers, fresh_name)
    before = offsets(servers, fresh_name)
    words = ("streams", "reset", "--application-id", fresh_name, "--input-topics", f"{source},nowhere")
    ended = run_command(*words, servers=servers)
    assert (ended.code, ended.out) == (2, "")
    assert "there is no topic 'nowhere'" in ended.err
    assert offsets(servers, fresh_name) == before
    assert set(internal(fresh_name)) <= set(run_command("topic", "list", servers=servers).out.split())


def test_a_running_application_is_reset_by_force_only(
    cluster: RunningBroker, run: Run, ok: Run, fresh_name: str
) -> None:
    servers = cluster.bootstrap_servers
    source, _ = prepare(servers, fresh_name)
    words = ("streams", "reset", "--application-id", fresh_name, "--input-topics", source)
    with classic_members(servers, fresh_name, [source], 1):
        ended = run(*words)
        assert ended.code == 1
        assert "has 1 members and is Stable" in ended.err
        ok(*words, "--force", "--internal-topics", f"{fresh_name}-counts-changelog")
        assert offsets(servers, fresh_name)[source, 0] == 0


@pytest.mark.java
@pytest.mark.slow
def test_the_lines_are_those_of_kafkas_tool(apache_kafka: ApacheKafka, fresh_name: str, tmp_path: Path) -> None:
    source, between = prepare(apache_kafka.bootstrap_servers, fresh_name)
    file = tmp_path / "offsets.csv"
    file.write_text(f"{source},0,2\n{source},1,99\n")
    inputs = ("--input-topics", source)
    for words in (
        (*inputs, "--intermediate-topics", between, "--shift-by", "1"),
        (*inputs, "--from-file", str(file)),
        ("--input-topics", f"nowhere,{source}", "--to-datetime", "2100-01-31T12:00:00.000"),
        ("--internal-topics", f"{fresh_name}-counts-changelog"),
    ):
        server = ("--bootstrap-server", apache_kafka.bootstrap_servers, "--application-id", fresh_name, "--dry-run")
        theirs = apache_kafka.run_tool(CLASS, *server, *words, input="")
        ours = run_command(TOOL, *server, *words)
        assert (_without_order(ours.lines), ours.code) == (
            _without_order(theirs.stdout.splitlines()),
            theirs.returncode,
        ), words
    server = ("--bootstrap-server", apache_kafka.bootstrap_servers, "--application-id", fresh_name)
    assert run_command(TOOL, *server, *inputs, "--to-latest").code == 0
    assert offsets(apache_kafka.bootstrap_servers, fresh_name)[source, 0] == 3


def _without_order(lines: Iterable[str]) -> list[str]:
    """Kafka's tool keeps topics in hash sets: their order, in a line and between lines, is nobody's promise."""
    return sorted(re.sub(r"\[(.*)\]", lambda names: str(sorted(names[1].split(", "))), line) for line in lines)
