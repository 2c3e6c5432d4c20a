"""Snapshots are taken by Kafka's triggers, replace the log that they cover, and are all or nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from tests.support.metadata_node import NodePorts, joined, run, running_node

from millstream.broker.metadata_replay import METADATA_DIRECTORY, read_metadata
from millstream.broker.metadata_snapshot import SnapshotId, list_snapshots, read_snapshot
from millstream.metadata.decision import Decision
from millstream.metadata.record_types import BeginTransactionRecord, ConfigRecord, EndTransactionRecord
from millstream.protocol.errors import CorruptMessage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from millstream.broker.controller_node import ControllerNode

FIRST = SnapshotId(0, 0)


def snapshots(directory: Path) -> list[SnapshotId]:
    return list_snapshots(NodePorts().disk, str(directory / METADATA_DIRECTORY))


async def write(node: ControllerNode, number: int) -> None:
    record = ConfigRecord(resource_type=4, resource_name="", name=f"n{number % 10}", value="v" * 50 + str(number))
    await node.submit(lambda image, _: Decision((record,), None))


async def until_snapshots(directory: Path, count: int) -> None:
    await until(lambda: len(snapshots(directory)) >= count)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  # the files are what is waited for
            await asyncio.sleep(0)


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_so_many_bytes_of_records_make_a_snapshot(tmp_path: Path, static: bool) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, static=static, record_bytes_between_snapshots_max=2_000) as node:
            for number in range(10):
                await write(node, number)
            assert snapshots(tmp_path) == ([] if static else [FIRST])
            for number in range(20):
                await write(node, number)
            await until_snapshots(tmp_path, 1 if static else 2)
            before = node.image
        newest = snapshots(tmp_path)[-1]
        assert newest.epoch == 1
        content = read_snapshot((tmp_path / METADATA_DIRECTORY / newest.file_name).read_bytes())
        assert content.kraft_version == (0 if static else 1)
        assert (content.voters is None) == static
        found = read_metadata(NodePorts().disk, str(tmp_path / METADATA_DIRECTORY))
        assert found.snapshot == newest
        assert found.image.configs == before.configs
        assert found.bytes_since_snapshot < 2_500

    run(scenario())


def test_time_makes_a_snapshot_of_what_is_new(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, snapshot_interval_max_ms=20) as node:
            await write(node, 1)
            # On a slow machine there may be one already of what came before.
            await until(lambda: snapshots(tmp_path)[-1].end_offset == node.image.offset + 1)

    run(scenario())


def test_no_snapshot_is_taken_within_a_metadata_transaction(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path, record_bytes_between_snapshots_max=500) as node:
            await node.submit(lambda image, _: Decision((BeginTransactionRecord(),), None))
            for number in range(20):
                await write(node, number)
            assert snapshots(tmp_path)[-1].end_offset < node.log.end_offset - 20
            await node.submit(lambda image, _: Decision((EndTransactionRecord(),), None))
            await until_snapshots(tmp_path, 2)

    run(scenario())


def test_retention_keeps_the_newest_snapshot_and_the_log_behind_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        ports = NodePorts()
        async with running_node(
            tmp_path, ports=ports, record_bytes_between_snapshots_max=1_000, retention_bytes_max=1, segment_bytes=2_000
        ) as node:
            for number in range(200):
                await write(node, number)
                ports.clock.now_ms += 1
            before = node.image
        kept = snapshots(tmp_path)
        assert len(kept) == 1
        assert node.log.log.start_offset == kept[0].end_offset
        segments = sorted(path.name for path in (tmp_path / METADATA_DIRECTORY).glob("*.log"))
        assert 1 <= len(segments) <= 2
        assert not list((tmp_path / METADATA_DIRECTORY).glob("*.deleted"))
        async with running_node(tmp_path) as node:
            assert node.image.configs == before.configs

    run(scenario())


def test_an_old_snapshot_goes_when_its_time_is_over(tmp_path: Path) -> None:
    async def scenario() -> None:
        ports = NodePorts()
        async with running_node(
            tmp_path, ports=ports, record_bytes_between_snapshots_max=1_000, retention_ms_max=60_000
        ) as node:
            while len(snapshots(tmp_path)) < 3:
                await write(node, 1)
            old = snapshots(tmp_path)
            ports.clock.now_ms += 60_001
            while snapshots(tmp_path)[-1] == old[-1]:
                await write(node, 1)
            # What was current before the long silence stays until its successor has aged as well.
            await until_snapshots(tmp_path, 1)
        assert not set(old[:-1]) & set(snapshots(tmp_path))

    run(scenario())


def test_a_half_written_snapshot_is_not_one(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await write(node, 1)
            before = node.image
        part = tmp_path / METADATA_DIRECTORY / "00000000000000000005-0000000001.checkpoint.part"
        part.write_bytes(b"half")
        async with running_node(tmp_path) as node:
            assert not part.exists()
            assert node.image.configs == before.configs

    run(scenario())


def test_a_snapshot_without_its_footer_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await write(node, 1)
            await node.snapshot()

    run(scenario())
    content = (tmp_path / METADATA_DIRECTORY / snapshots(tmp_path)[-1].file_name).read_bytes()
    for end in (0, 50, len(content) - 75, len(content) - 1):
        with pytest.raises(CorruptMessage):
            read_snapshot(content[:end])
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    with pytest.raises(CorruptMessage):
        read_snapshot(bytes(flipped))


def test_a_snapshot_ahead_of_the_log_replaces_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await joined(node)
            await write(node, 1)
            newest = await node.snapshot()
            before = node.image
        ahead = SnapshotId(10_000, newest.epoch)
        directory = tmp_path / METADATA_DIRECTORY
        (directory / newest.file_name).rename(directory / ahead.file_name)
        async with running_node(tmp_path) as node:
            assert node.log.log.start_offset == 10_000
            assert node.image.offset >= 10_000
            assert node.image.configs == before.configs

    run(scenario())
