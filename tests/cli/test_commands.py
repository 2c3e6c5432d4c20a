"""Our own commands: what they print, and how they refuse."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import run_command

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Ended, Run, Until
    from tests.support.running import RunningBroker


def test_a_topic_lives_and_dies(ok: Run, until: Until, fresh_name: str) -> None:
    created = json.loads(ok("topic", "create", fresh_name, "--partitions", "2", "--json").out)
    assert (created[0]["topic"], created[0]["partitions"]) == (fresh_name, 2)
    until(lambda ended: fresh_name in ended.out, "topic", "list")
    altered = ok("topic", "alter", fresh_name, "--partitions", "3", "--config", "retention.ms=5000")
    assert "retention.ms" in altered.out
    describe = ("topic", "describe", fresh_name, "--json")
    until(lambda ended: [row["partition"] for row in json.loads(ended.out)] == [0, 1, 2], *describe)
    ok("topic", "delete", fresh_name)
    until(lambda ended: fresh_name not in ended.out, "topic", "list")


def test_a_refusal_is_one_sentence_and_exit_code_1(ok: Run, run: Run, fresh_name: str) -> None:
    ok("topic", "create", fresh_name)
    refused = run("topic", "create", fresh_name)
    assert (refused.code, refused.out) == (1, "")
    assert len(refused.err.splitlines()) == 1
    assert fresh_name in refused.err
    ok("topic", "create", fresh_name, "--if-not-exists")
    ok("topic", "delete", "never-there", "--if-exists")


def test_settings_are_set_and_unset(ok: Run, until: Until, fresh_name: str) -> None:
    ok("topic", "create", fresh_name)

    def retention_is(value: str, source: str) -> None:
        def shown(ended: Ended) -> bool:
            (row,) = json.loads(ended.out)
            return (row["value"], row["source"]) == (value, source)

        until(shown, "config", "describe", "topic", fresh_name, "retention.ms", "--json")

    retention_is("604800000", "DEFAULT_CONFIG")
    ok("config", "set", "topic", fresh_name, "retention.ms=1234")
    retention_is("1234", "DYNAMIC_TOPIC_CONFIG")
    ok("config", "unset", "topic", fresh_name, "retention.ms")
    retention_is("604800000", "DEFAULT_CONFIG")


def test_the_cluster_is_described(ok: Run, cluster: RunningBroker) -> None:
    (row,) = json.loads(ok("cluster", "describe", "--json").out)
    assert f"{row['host']}:{row['port']}" == cluster.bootstrap_servers
    for command in ("quorum", "features", "disks"):
        assert len(ok("cluster", command).lines) > 1


def test_feature_levels_are_changed_for_the_whole_cluster(ok: Run, run: Run) -> None:
    def finalized() -> int:
        rows = json.loads(ok("cluster", "features", "--json").out)
        return next(row["finalized"] for row in rows if row["feature"] == "group.version")

    assert finalized() == 1
    ok("cluster", "features", "--level", "group.version=0", "--downgrade", "--dry-run")
    ok("cluster", "features", "--level", "group.version=1")
    assert finalized() == 1
    refused = run("cluster", "features", "--level", "group.version=9")
    assert refused.code == 1
    assert "INVALID_UPDATE_VERSION" in refused.err
    assert run("cluster", "features", "--level", "group.version=high").code == 2


def test_what_was_produced_is_consumed(ok: Run, fresh_name: str) -> None:
    ok("topic", "create", fresh_name, "--partitions", "1")
    ok("produce", fresh_name, "--key-separator", ":", "-H", "from=test", "-T", "1790000000000", stdin="a:1\nb:2\n")
    shown = ok("consume", fresh_name, "--from-beginning", "--exit", "--format", r"%t %p %o %k=%s %T %h %K %S%%\n")
    assert shown.lines == [
        f"{fresh_name} 0 0 a=1 1790000000000 from=test 1 1%",
        f"{fresh_name} 0 1 b=2 1790000000000 from=test 1 1%",
    ]


def test_json_goes_from_one_topic_to_another_unharmed(ok: Run, fresh_name: str) -> None:
    other = f"{fresh_name}-copy"
    for name in (fresh_name, other):
        ok("topic", "create", name, "--partitions", "1")
    ok("produce", fresh_name, "--key", "k", stdin=b"text \xc3\xa9\n\xff\xfe bytes\n")
    ok("produce", fresh_name, "--key", "k", "--tombstone")
    read = ok("consume", fresh_name, "--from-beginning", "--exit", "--json").out
    ok("produce", other, "--from-json", stdin=read)
    copied = ok("consume", other, "--from-beginning", "--exit", "--json").out
    assert copied.replace(other, fresh_name) == read
    assert [json.loads(line)["value"] for line in read.splitlines()] == ["text é", {"base64": "//4gYnl0ZXM="}, None]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read(ok: Run, fresh_name: str, codec: str) -> None:
    ok("topic", "create", fresh_name, "--partitions", "1")
    ok("produce", fresh_name, "--compression", codec, stdin="line\n" * 1000)
    assert ok("consume", fresh_name, "--from-beginning", "--exit").lines == ["line"] * 1000


def test_files_are_lines_or_whole_records(ok: Run, fresh_name: str, tmp_path: Path) -> None:
    ok("topic", "create", fresh_name, "--partitions", "1")
    file = tmp_path / "file"
    file.write_text("one\ntwo\n")
    ok("produce", fresh_name, str(file))
    ok("produce", fresh_name, "--whole", str(file))
    assert ok("consume", fresh_name, "-o", "0", "-e", "-f", "%S,").out == "3,3,8,"


def test_reading_starts_where_it_is_told(ok: Run, run: Run, fresh_name: str) -> None:
    ok("topic", "create", fresh_name, "--partitions", "2")
    for number in range(4):
        stamp = str(1_790_000_000_000 + number)
        ok("produce", fresh_name, "-p", "1", "--value", str(number), "--timestamp", stamp)

    def read(*words: str) -> list[str]:
        return ok("consume", fresh_name, "--exit", *words).lines

    assert read("--from-beginning") == ["0", "1", "2", "3"]
    assert read("-p", "1", "--offset", "2") == ["2", "3"]
    assert read("--offset", "-1") == ["3"]
    assert read("--since", "1790000000001") == ["1", "2", "3"]
    assert read("--from-beginning", "--limit", "2") == ["0", "1"]
    assert read("-p", "0", "--from-beginning") == []
    assert read() == []
    outside = run("consume", fresh_name, "-p", "1", "--offset", "77")
    assert outside.code == 2
    assert "0 to 4" in outside.err


def test_a_key_decides_the_partition_and_keyless_records_are_spread(ok: Run, fresh_name: str) -> None:
    ok("topic", "create", fresh_name, "--partitions", "5")
    keyed = "".join(f"k{number}:x\n" for number in range(50))
    for _ in range(2):
        ok("produce", fresh_name, "-K", ":", stdin=keyed)
    seen = ok("consume", fresh_name, "--from-beginning", "--exit", "-f", r"%k %p\n").lines
    assert len(seen) == 100
    assert len(set(seen)) == 50
    # Where Java's producer puts them; kafka-console-producer was asked.
    assert {"k1 2", "k2 3"} <= set(seen)
    ok("topic", "create", f"{fresh_name}-keyless", "--partitions", "4")
    ok("produce", f"{fresh_name}-keyless", stdin=("x" * 1000 + "\n") * 5000)
    partitions = set(ok("consume", f"{fresh_name}-keyless", "--from-beginning", "--exit", "-f", r"%p\n").lines)
    assert len(partitions) > 1


@pytest.mark.parametrize(
    ("words", "about"),
    [
        (["topic", "crate"], "topic crate"),
        (["nothing"], "nothing"),
        (["topic", "create"], "name"),
        (["topic", "alter", "x"], "say what to alter"),
        (["topic", "create", "x", "--config", "y"], "name=value"),
        (["consume", "x", "--from-beginning", "--offset", "1"], "exclude each other"),
        (["consume", "x", "--format", "%q"], "%q"),
        (["broker", "--set", "no.such.setting=1"], "no.such.setting"),
        (["broker", "missing.properties"], "missing.properties"),
        (["log", "dump", "nowhere"], "nowhere"),
    ],
)
def test_a_command_line_that_makes_no_sense_ends_with_2(words: list[str], about: str) -> None:
    ended = run_command(*words)
    assert (ended.code, ended.out) == (2, "")
    assert about in ended.err


def test_an_address_where_nobody_listens_is_told_at_once() -> None:
    ended = run_command("topic", "list", servers="127.0.0.1:1")
    assert (ended.code, ended.err) == (1, "millstream: cannot connect to 127.0.0.1:1: connection refused\n")


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["topic", "--help"], ["consume", "--help"], ["kafka-topics", "--help"]]
)
def test_help_needs_no_broker(words: list[str]) -> None:
    ended = run_command(*words)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith("usage: ")
