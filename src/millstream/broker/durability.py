"""acks=all that survives the loss of power: the high watermark follows the fsync, not the write.

Appends go on while a sync is under way; when it has finished, all that came before it started is committed at once
(group commit). One sync per partition at a time, in a thread, with nothing locked: other partitions don't feel a slow
disk.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from millstream.broker.partition import Partition
    from millstream.runtime.ports import Workers

_log = Logger("millstream.durability")


class Durability:
    """Syncs partitions and tells them how far they are durable."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._syncing: dict[Partition, asyncio.Task[None]] = {}

    def make_durable(self, partition: Partition) -> None:
        """See to it that what is in the log now will be synced; `partition.became_durable` hears of it."""
        if partition not in self._syncing:
            self._syncing[partition] = asyncio.get_running_loop().create_task(self._sync(partition))

    async def sync(self, partition: Partition) -> None:
        """Sync what is in the log now."""
        self.make_durable(partition)
        await self._syncing[partition]

    async def _sync(self, partition: Partition) -> None:
        log = partition.log
        try:
            while (end_offset := log.end_offset) > log.recovery_point and not log.closed:
                for target in log.sync_targets():
                    await self._workers.in_thread(target.sync)
                log.synced(end_offset)
                partition.became_durable(log.recovery_point)
        except OSError as error:
            # After a failed fsync nobody knows what the disk holds (the kernel may have dropped the pages).
            _log.error("fsync failed", topic=partition.topic, partition=partition.index, error=str(error))
            log.mark_offline(error)
            partition.went_offline()
        finally:
            del self._syncing[partition]

    async def stop(self) -> None:
        await asyncio.gather(*self._syncing.values(), return_exceptions=True)
