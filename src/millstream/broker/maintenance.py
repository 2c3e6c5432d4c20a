"""What happens by the clock: retention, flushes, checkpoints, compaction, idle connections.

Every job is a method, run again and again with a pause that its setting gives. A job that fails is logged and tried
again: a full disk now must not end retention, which is what will free it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.log.config import FOREVER
from millstream.log.directory import LogDirectory
from millstream.protocol.errors import BrokerError, StorageError
from millstream.runtime.logs import Logger
from millstream.runtime.ports import ChildFailed
from millstream.settings import (
    LOG_CLEANER_BACKOFF_MS,
    LOG_CLEANER_ENABLE,
    LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS,
    LOG_FLUSH_SCHEDULER_INTERVAL_MS,
    LOG_RETENTION_CHECK_INTERVAL_MS,
    PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS,
    REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from millstream.broker.node import Node
    from millstream.broker.partition import Partition
    from millstream.settings import Setting

_log = Logger("millstream.maintenance")

_LONGEST_PAUSE_MS = 24 * 60 * 60 * 1000
_IDLE_CHECK_MS = 5_000
_REMOVAL_CHECK_MS = 1_000


class Maintenance:
    """The jobs of one broker."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for job, pause in (
            (self.enforce_retention, LOG_RETENTION_CHECK_INTERVAL_MS),
            (self.flush_old, LOG_FLUSH_SCHEDULER_INTERVAL_MS),
            (self.checkpoint_offsets, LOG_FLUSH_OFFSET_CHECKPOINT_INTERVAL_MS),
            (self.checkpoint_high_watermarks, REPLICA_HIGH_WATERMARK_CHECKPOINT_INTERVAL_MS),
            (self.expire_producers, PRODUCER_ID_EXPIRATION_CHECK_INTERVAL_MS),
            (self.remove_files, _REMOVAL_CHECK_MS),
            (self.compact, LOG_CLEANER_BACKOFF_MS),
            (self.let_go_of_idle, _IDLE_CHECK_MS),
        ):
            self._tasks.append(asyncio.get_running_loop().create_task(self._repeat(job, pause)))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _repeat(self, job: Callable[[], Awaitable[None]], pause: Setting[int] | int) -> None:
        while True:
            # Asked for each time: some of these settings change live.
            pause_ms = pause if isinstance(pause, int) else self._node.settings[pause]
            # A pause of "for ever" (the flush scheduler's default) still has to be a number that a timer takes.
            await asyncio.sleep(min(pause_ms, _LONGEST_PAUSE_MS) / 1000)
            try:
                await job()
            except OSError as error:
                _log.error("maintenance failed", job=job.__name__, error=str(error))
            except Exception as error:  # noqa: BLE001  # the next run may succeed, and must happen
                _log.error("maintenance failed", job=job.__name__, exc_info=error)

    # --- jobs

    async def enforce_retention(self) -> None:
        for partition in list(self._node.partitions):
            log = partition.log
            if not log.is_offline and not log.closed:
                try:
                    self._node.metrics.deleted_segments += log.enforce_retention(self._node.ports.clock.wall_ms())
                except StorageError as error:
                    _log.error("old segments stay", topic=partition.topic, partition=partition.index, error=str(error))
                    partition.went_offline()
            await asyncio.sleep(0)

    async def remove_files(self) -> None:
        """Free the space of segments that were deleted long enough ago."""
        now_ms = self._node.ports.clock.wall_ms()
        for partition in list(self._node.partitions):
            log = partition.log
            if log.removals and not log.closed and not log.is_offline:
                try:
                    await self._node.ports.workers.in_thread(log.remove_due, now_ms)
                except OSError as error:
                    # By itself, or one disk would keep the files of all others.
                    _log.error("files stay", topic=partition.topic, partition=partition.index, error=str(error))

    async def compact(self) -> None:
        """Clean the dirtiest logs, one after the other, until none is dirty enough."""
        while self._node.settings[LOG_CLEANER_ENABLE]:
            try:
                done = await self._node.compactor.run_once()
            except (BrokerError, ChildFailed):
                self._node.metrics.failed_compactions += 1
                raise
            if done is None:
                return
            self._node.metrics.compactions += 1
            if done.damage is not None:
                topic, index = done.partition
                _log.warning("a log cannot be compacted", topic=topic, partition=index, damage=done.damage)

    async def flush_old(self) -> None:
        """`flush.ms`: sync what has waited for longer than the topic allows."""
        now_ms = self._node.ports.clock.wall_ms()
        for partition in list(self._node.partitions):
            log = partition.log
            if log.config.flush_ms != FOREVER and not log.is_offline and log.flush_is_due(now_ms):
                await self.flush(partition)

    async def flush(self, partition: Partition) -> None:
        await self._node.durability.sync(partition)

    async def checkpoint_offsets(self) -> None:
        self._checkpoint(LogDirectory.write_offset_checkpoints)

    async def checkpoint_high_watermarks(self) -> None:
        self._checkpoint(LogDirectory.write_high_watermarks)

    def _checkpoint(self, write: Callable[[LogDirectory], None]) -> None:
        """Every directory by itself: one that fails does not keep the others from it."""
        for directory in self._node.log_directories:
            if directory.failure is not None:
                continue
            try:
                write(directory)
            except OSError as error:
                _log.error("offsets could not be written", directory=directory.path, error=str(error))
                self._node.partitions.directory_failed(directory, error)

    async def expire_producers(self) -> None:
        now_ms = self._node.ports.clock.wall_ms()
        for partition in list(self._node.partitions):
            partition.log.expire_producers(now_ms)

    async def let_go_of_idle(self) -> None:
        now_ms = self._node.ports.clock.monotonic_ms()
        for listener in self._node.listeners:
            listener.let_go_of_idle(now_ms)
