"""The jobs of a broker go through all of its partitions, whatever the disk of one of them does."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from tests.broker.replica_scene import Scene, play

from millstream.log.cutting import Removal

if TYPE_CHECKING:
    from millstream.broker.partition import Partition

GONE = OSError(errno.EROFS, "a read-only file system")


def test_files_that_cannot_be_removed_do_not_keep_those_of_others() -> None:
    async def scenario(scene: Scene) -> None:
        await scene.create([1], [1])
        removed: list[int] = []

        def with_removals(partition: Partition, *, fails: bool) -> None:
            def remove_due(now_ms: int) -> None:
                removed.append(partition.index)
                if fails:
                    raise GONE

            partition.log.removals.append(Removal(0, ["some.deleted"]))
            partition.log.remove_due = remove_due  # type: ignore[method-assign, assignment]

        with_removals(scene.partition(1, 0), fails=True)
        with_removals(scene.partition(1, 1), fails=False)
        await scene.node(1).maintenance.remove_files()
        assert removed == [0, 1]
        scene.partition(1, 0).log.mark_offline(GONE)
        removed.clear()
        await scene.node(1).maintenance.remove_files()
        assert removed == [1], "nothing is done to a log that is offline"

    play(scenario)
