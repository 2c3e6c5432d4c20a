"""Folders of deleted partitions: removed when their time has come, one at a time, and cheap to keep until then."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.deletions import Deletions
from millstream.testing.loop import VirtualLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TAKES_S = 0.25


class Disk:
    """Says when each folder went. Those called `stuck` cannot be removed."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self.removed: list[tuple[float, str]] = []
        self.at_once = 0
        self.most_at_once = 0

    def remove_tree(self, folder: str) -> None:
        if folder == "stuck":
            raise PermissionError(13, "Permission denied", folder)
        if folder == "gone":
            raise FileNotFoundError(2, "No such file or directory", folder)
        self.removed.append((round(self._loop.time(), 3), folder))

    async def in_thread(self, call: Callable[..., None], *arguments: object) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(TAKES_S)
            call(*arguments)
        finally:
            self.at_once -= 1


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    loop = VirtualLoop()
    yield loop
    loop.close()


def made(disk: Disk) -> Deletions:
    ports: Any = disk
    return Deletions(ports, ports, ports)


def test_each_folder_goes_after_its_own_delay(loop: VirtualLoop) -> None:
    disk = Disk(loop)

    async def main() -> None:
        deletions = made(disk)
        deletions.remove_later("slow", 60_000)
        deletions.remove_later("quick", 1_000)
        await asyncio.sleep(10)
        deletions.remove_later("later", 2_000)
        await asyncio.sleep(60)
        assert not len(deletions)

    loop.run_until_complete(main())
    assert disk.removed == [(1.25, "quick"), (12.25, "later"), (60.25, "slow")]


def test_they_go_one_after_the_other_in_the_order_in_which_they_came(loop: VirtualLoop) -> None:
    disk = Disk(loop)

    async def main() -> None:
        deletions = made(disk)
        for number in range(5):
            deletions.remove_later(str(number), 1_000)
        await asyncio.sleep(1.1)
        # While others are being removed.
        deletions.remove_later("now", 0)
        await asyncio.sleep(10)

    loop.run_until_complete(main())
    assert [folder for _, folder in disk.removed] == ["0", "1", "2", "3", "4", "now"]
    assert disk.most_at_once == 1


def test_one_that_cannot_be_removed_does_not_keep_the_others(loop: VirtualLoop) -> None:
    disk = Disk(loop)

    async def main() -> None:
        deletions = made(disk)
        for folder in ("stuck", "gone", "well"):
            deletions.remove_later(folder, 0)
        await asyncio.sleep(10)

    loop.run_until_complete(main())
    assert [folder for _, folder in disk.removed] == ["well"]


def test_a_stop_waits_for_the_one_at_hand_and_leaves_the_rest(loop: VirtualLoop) -> None:
    disk = Disk(loop)

    async def main() -> None:
        deletions = made(disk)
        for folder in ("first", "second"):
            deletions.remove_later(folder, 1_000)
        deletions.remove_later("in an hour", 3_600_000)
        await asyncio.sleep(1.1)
        await deletions.stop()
        assert round(loop.time(), 3) == 1.25
        await asyncio.sleep(7_200)

    loop.run_until_complete(main())
    assert [folder for _, folder in disk.removed] == ["first"]


def test_a_folder_that_waits_needs_little_memory(loop: VirtualLoop) -> None:
    """As many partitions as a busy cluster deletes within the delay; a timer for each is ten times as much."""
    count = 2_000

    async def main() -> None:
        deletions = made(Disk(loop))
        folders = [f"/logs/topic-{number}.0123456789abcdef0123456789abcdef-delete" for number in range(count)]
        before = sys.getallocatedblocks()
        for folder in folders:
            deletions.remove_later(folder, 60_000)
        blocks = sys.getallocatedblocks() - before
        # A tuple, a float and an int.
        assert blocks < 4 * count
        await deletions.stop()

    loop.run_until_complete(main())
