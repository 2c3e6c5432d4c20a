"""Removes files that nobody needs any more, later and outside of the loop.

Kafka keeps deleted segments and partitions for `file.delete.delay.ms` under another name, so that whoever is reading
them can finish. A stop does not wait: what is left is removed at the next start.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.log.log import Log
    from millstream.runtime.ports import Disk, Random, Workers

_log = Logger("millstream.deletions")


class Deletions:
    """What is waiting to be removed."""

    def __init__(self, disk: Disk, workers: Workers, random: Random) -> None:
        self._disk = disk
        self._workers = workers
        self._random = random
        self._timers: dict[asyncio.TimerHandle, None] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    def delete_log(self, log: Log) -> None:
        """Rename a deleted partition's folder out of the way, and remove it after the delay."""
        delay_ms = log.config.file_delete_delay_ms
        try:
            renamed = log.delete(self._random.uuid().hex())
        except OSError as error:
            _log.error("a deleted partition could not be renamed", directory=log.directory, error=str(error))
            return
        self.later(delay_ms, self._disk.remove_tree, renamed)

    def later(self, delay_ms: int, remove: Callable[..., None], *arguments: object) -> None:
        """Call `remove` in a thread after the delay."""
        loop = asyncio.get_running_loop()

        def start() -> None:
            self._timers.pop(timer, None)
            task = loop.create_task(self._remove(remove, *arguments))
            self._tasks[task] = None
            task.add_done_callback(lambda done: self._tasks.pop(done, None))

        timer = loop.call_later(delay_ms / 1000, start)
        self._timers[timer] = None

    async def _remove(self, remove: Callable[..., None], *arguments: object) -> None:
        try:
            await self._workers.in_thread(remove, *arguments)
        except FileNotFoundError:
            pass
        except OSError as error:
            _log.warning("a deleted file could not be removed", what=arguments, error=str(error))

    async def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        await asyncio.gather(*self._tasks, return_exceptions=True)
