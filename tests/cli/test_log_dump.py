"""`millstream log dump` reads every file of a directory, Apache Kafka's and ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.cli.conftest import run_command
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from tests.cli.conftest import Run
    from tests.support.running import RunningBroker


def dumped(*words: str) -> list[dict[str, Any]]:
    ended = run_command("log", "dump", "--json", *words)
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.lines]


def whole_dump(*paths: str) -> list[dict[str, Any]]:
    ended = run_command("log", "dump", "--json", *paths)
    return [json.loads(line) for line in ended.lines] if ended.code == 0 else []


def test_batches_and_records_of_a_partition_are_shown(ok: Run, cluster: RunningBroker, fresh_name: str) -> None:
    ok("topic", "create", fresh_name, "--partitions", "1")
    ok("produce", fresh_name, "--key", "k", "--compression", "zstd", stdin="one\ntwo\n")
    log = str(cluster.data_directory / f"{fresh_name}-0" / "00000000000000000000.log")
    batch, first, second = dumped(log)
    assert (batch["base_offset"], batch["count"], batch["codec"], batch["valid"]) == (0, 2, "zstd", True)
    assert [(record["offset"], record["key"], record["value"]) for record in (first, second)] == [
        (0, "k", "one"),
        (1, "k", "two"),
    ]
    assert len(dumped(log, "--batches")) == 1
    assert "valid=true" in run_command("log", "dump", log).out


def test_the_metadata_log_is_decoded(ok: Run, cluster: RunningBroker, fresh_name: str) -> None:
    ok("topic", "create", fresh_name, "--partitions", "2")
    records = dumped(str(cluster.data_directory / "__cluster_metadata-0"))
    topics = [entry["value"]["name"] for entry in records if entry.get("type") == "TopicRecord"]
    assert fresh_name in topics
    assert any(entry.get("type") == "LEADER_CHANGE" for entry in records)


def test_every_file_of_the_data_directory_is_understood(ok: Run, cluster: RunningBroker, fresh_name: str) -> None:
    ok("topic", "create", fresh_name, "--partitions", "1")
    # The broker is shared, and other tests damage files of their own topics: theirs stay out.
    ours = [
        str(path)
        for path in sorted(cluster.data_directory.iterdir())
        if (path.is_dir() and path.name.startswith(("__", fresh_name)))
        or path.name.endswith((".properties", "checkpoint"))
    ]
    # The broker goes on writing: a batch that is half there when we look is whole a moment later.
    entries = wait_until(lambda: whole_dump(*ours), "a dump without a torn end")
    assert {"meta.properties", "bootstrap.checkpoint"} <= {Path(entry["file"]).name for entry in entries}


def test_a_damaged_file_is_shown_as_far_as_it_goes_and_ends_with_1(
    ok: Run, cluster: RunningBroker, fresh_name: str, tmp_path: Path
) -> None:
    ok("topic", "create", fresh_name, "--partitions", "1")
    for value in ("one", "two"):
        ok("produce", fresh_name, "--value", value)
    whole = (cluster.data_directory / f"{fresh_name}-0" / "00000000000000000000.log").read_bytes()
    torn = tmp_path / "00000000000000000000.log"
    torn.write_bytes(whole[:-5])
    ended = run_command("log", "dump", str(torn))
    assert ended.code == 1
    assert "value=one" in ended.out
    assert "not a whole batch" in ended.out
    flipped = tmp_path / "00000000000000000001.log"
    flipped.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert "valid=false" in run_command("log", "dump", str(flipped)).out
