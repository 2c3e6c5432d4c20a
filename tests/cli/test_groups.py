"""Our own commands about groups, against Apache Kafka and Millstream."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from millstream.client.sync import SyncClient
from tests.cli.conftest import environment
from tests.cli.group_scene import classic_members, new_members
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.cli.conftest import Run, Until
    from tests.support.running import RunningBroker

START_MS = 1_790_000_000_000


@pytest.fixture
def client(cluster: RunningBroker) -> Iterator[SyncClient]:
    with SyncClient({"bootstrap.servers": cluster.bootstrap_servers, "client.id": "new"}) as made:
        yield made


@pytest.fixture
def topic(ok: Run, until: Until, fresh_name: str) -> str:
    """Three partitions with ten records each, a second apart."""
    ok("topic", "create", fresh_name, "--partitions", "3", "--config", "retention.ms=-1")
    until(lambda ended: len(ended.lines) == 4, "topic", "describe", fresh_name)
    for partition in range(3):
        records = [json.dumps({"value": str(number), "timestamp": START_MS + number * 1_000}) for number in range(10)]
        ok(
            "produce",
            fresh_name,
            "--partition",
            str(partition),
            "--from-json",
            stdin="".join(f"{line}\n" for line in records),
        )
    return fresh_name


def rows(ended_out: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(ended_out)
    return found


def test_a_group_goes_on_where_it_stopped(ok: Run, topic: str) -> None:
    group = f"{topic}-group"
    first = ok("consume", topic, "--group", group, "--from-beginning", "--limit", "7").lines
    assert len(first) == 7
    rest = ok("consume", topic, "--group", group, "--exit").lines
    assert sorted(first + rest) == sorted(str(number) for number in range(10) for _ in range(3))
    assert ok("consume", topic, "--group", group, "--exit").lines == []
    described = rows(ok("group", "describe", group, "--json").out)
    assert [(row["partition"], row["offset"], row["lag"]) for row in described] == [(0, 10, 0), (1, 10, 0), (2, 10, 0)]
    assert all(row["member"] is None for row in described)


def test_a_new_group_starts_at_the_end_and_its_place_is_kept(ok: Run, run: Run, topic: str) -> None:
    group = f"{topic}-group"
    assert ok("consume", topic, "--group", group, "--timeout", "0.2").lines == []
    ok("produce", topic, "--partition", "1", stdin="late\n")
    assert ok("consume", topic, "--group", group, "--exit").lines == ["late"]
    for wrong in (("--partition", "0"), ("--offset", "3"), ("--since", "10m")):
        assert run("consume", topic, "--group", group, *wrong).code == 2


def test_two_readers_share_and_the_one_that_stays_gets_all(
    cluster: RunningBroker, ok: Run, topic: str, tmp_path: Path
) -> None:
    group = f"{topic}-group"
    command = [sys.executable, "-m", "millstream.cli.main", "consume", topic, "--group", group, "--from-beginning"]
    shown, said = ([tmp_path / f"{number}.{end}" for number in range(2)] for end in ("out", "err"))

    def start(out: Path, err: Path) -> subprocess.Popen[bytes]:
        with out.open("wb") as stdout, err.open("wb") as stderr:
            return subprocess.Popen(command, stdout=stdout, stderr=stderr, env=environment(cluster.bootstrap_servers))

    readers = [start(*files) for files in zip(shown, said, strict=True)]

    def members() -> list[dict[str, object]]:
        listed = group in [row["group"] for row in rows(ok("group", "list", "--json").out)]
        return rows(ok("group", "members", group, "--json").out) if listed else []

    def until_shared(expected: list[int], what: str) -> None:
        try:
            wait_until(
                lambda: sorted(len(row["partitions"]) for row in members()) == expected,  # type: ignore[arg-type]
                what,
                within_s=120,
            )
        except TimeoutError as late:
            late.add_note(f"members: {members()}")
            late.add_note(f"readers ended with {[reader.poll() for reader in readers]}")
            late.add_note(f"readers said {[file.read_text() for file in said]}")
            raise

    try:
        until_shared([1, 2], "two members with partitions")
        # Ctrl-C leaves the group, so the other does not wait for the session to end.
        readers[0].send_signal(signal.SIGINT)
        until_shared([3], "one member with all partitions")
        assert readers[0].wait(timeout=60) == 130
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
    values = [int(line) for file in shown for line in file.read_text().split()]
    # Nothing is lost on the way; at a rebalance something may be shown twice.
    assert set(values) == set(range(10))
    assert len(values) >= 30


def test_members_that_have_nothing_to_read_are_idle(cluster: RunningBroker, ok: Run, topic: str) -> None:
    group = f"{topic}-group"
    with classic_members(cluster.bootstrap_servers, group, [topic], 4):
        members = rows(ok("group", "members", group, "--json").out)
        assert sorted(str(row["client"]) for row in members) == [f"member-{number}" for number in range(4)]
        assert [row["idle"] for row in members].count(True) == 1
        assert sorted(place for row in members for place in row["partitions"]) == [f"{topic}:{n}" for n in range(3)]  # type: ignore[attr-defined]
        listed = rows(ok("group", "list", "--state", "stable", "--json").out)
        assert {"group": group, "type": "classic", "protocol": "consumer", "state": "Stable"}.items() <= next(
            row for row in listed if row["group"] == group
        ).items()


def test_groups_of_the_new_protocol_look_the_same(client: SyncClient, ok: Run, run: Run, topic: str) -> None:
    group = f"{topic}-group"
    with new_members(client, group, [topic], ["one", "two", "three", "four"]):
        members = rows(ok("group", "members", group, "--json").out)
        assert sorted(str(row["member"]) for row in members) == ["four", "one", "three", "two"]
        assert [row["idle"] for row in members].count(True) == 1
        described = rows(ok("group", "describe", group, "--json").out)
        assert [(row["topic"], row["offset"], row["end"]) for row in described] == [(topic, None, 10)] * 3
        listed = rows(ok("group", "list", "--type", "consumer", "--json").out)
        assert group in [row["group"] for row in listed]
        refused = run("group", "reset-offsets", group, "--topic", topic, "--to-earliest", "--execute")
        assert refused.code == 1
        assert "4 members" in refused.err


def new_offsets(run: Run, group: str, *words: str) -> list[object]:
    return [row["new_offset"] for row in rows(run("group", "reset-offsets", group, *words, "--json").out)]


def test_offsets_are_moved_to_where_one_says(ok: Run, topic: str) -> None:
    group = f"{topic}-group"
    everything = ("--topic", topic)
    assert new_offsets(ok, group, *everything, "--to-earliest") == [0, 0, 0]
    assert new_offsets(ok, group, *everything, "--to-latest") == [10, 10, 10]
    assert new_offsets(ok, group, *everything, "--to-offset", "4") == [4, 4, 4]
    assert new_offsets(ok, group, *everything, "--to-offset", "400") == [10, 10, 10]
    assert new_offsets(ok, group, *everything, "--to-datetime", str(START_MS + 2_500)) == [3, 3, 3]
    assert new_offsets(ok, group, *everything, "--to-datetime", "2026-09-21T14:13:22.500Z") == [3, 3, 3]
    assert new_offsets(ok, group, *everything, "--by-duration", "P36500D") == [0, 0, 0]
    assert new_offsets(ok, group, *everything, "--by-duration", "PT-1H") == [10, 10, 10]
    # None of this was carried out.
    assert new_offsets(ok, group, "--all-topics", "--to-current") == []
    assert new_offsets(ok, group, "--topic", f"{topic}:0,2", "--to-offset", "5", "--execute") == [5, 5]
    assert new_offsets(ok, group, "--all-topics", "--to-current") == [5, 5]
    assert new_offsets(ok, group, "--all-topics", "--shift-by", "-2", "--execute") == [3, 3]
    assert new_offsets(ok, group, "--all-topics", "--shift-by", "-20") == [0, 0]
    read = ok("consume", topic, "--group", group, "--exit", "-f", r"%p %o\n").lines
    assert sorted(read) == [f"{partition} {offset}" for partition in (0, 2) for offset in range(3, 10)]


def test_offsets_go_out_as_csv_and_come_back(ok: Run, run: Run, topic: str, tmp_path: Path) -> None:
    group = f"{topic}-group"
    ok("group", "reset-offsets", group, "--topic", topic, "--to-offset", "6", "--execute")
    exported = ok("group", "reset-offsets", group, "--all-topics", "--to-current", "--csv").out
    assert exported.replace('"', "") == "".join(f"{topic},{partition},6\n" for partition in range(3))
    file = tmp_path / "offsets.csv"
    file.write_text(exported)
    ok("group", "reset-offsets", group, "--all-topics", "--to-latest", "--execute")
    assert new_offsets(ok, group, "--from-file", str(file), "--execute") == [6, 6, 6]
    assert [row["offset"] for row in rows(ok("group", "describe", group, "--json").out)] == [6, 6, 6]
    for words in (("--topic", "nowhere", "--to-latest"), ("--topic", f"{topic}:7", "--to-latest")):
        refused = run("group", "reset-offsets", group, *words)
        assert (refused.code, len(refused.err.splitlines())) == (1, 1)


def test_groups_are_deleted_when_nobody_is_in_them(cluster: RunningBroker, ok: Run, run: Run, topic: str) -> None:
    group = f"{topic}-group"
    ok("group", "reset-offsets", group, "--topic", topic, "--to-latest", "--execute")
    with classic_members(cluster.bootstrap_servers, group, [topic], 1):
        refused = run("group", "delete", group)
        assert (refused.code, refused.out) == (1, "")
        assert "NON_EMPTY_GROUP" in refused.err
    ok("group", "delete", group)
    gone = run("group", "describe", group)
    assert gone.code == 1
    assert "GROUP_ID_NOT_FOUND" in gone.err
    assert group not in [row["group"] for row in rows(ok("group", "list", "--json").out)]
