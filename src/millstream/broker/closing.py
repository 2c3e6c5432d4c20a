"""The last steps of a clean stop: what was written is synced, and marked as such, so that a start need not recover."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.protocol.errors import BrokerError
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from millstream.log.directory import LogDirectory
    from millstream.runtime.ports import Workers

_log = Logger("millstream.node")


async def close_in_order(directory: LogDirectory, workers: Workers, broker_epoch: int) -> None:
    """A thousand partitions have thousands of files to sync: in threads, so that they share the disk's flushes."""
    targets = directory.prepare_close()
    files = [target for target in targets if not target.is_directory]
    folders = [target for target in targets if target.is_directory]
    # A name is worth nothing before its content: folders come after the files in them.
    outcomes = await asyncio.gather(*(workers.in_thread(target.sync) for target in files), return_exceptions=True)
    outcomes += await asyncio.gather(*(workers.in_thread(target.sync) for target in folders), return_exceptions=True)
    failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for error in failed[:1]:
        _log.error("not everything could be synced; the next start recovers", error=str(error))
    # Not synced by us: `close` tries by itself, log by log, and marks those that fail.
    try:
        directory.close(broker_epoch, targets_synced=not failed)
    except OSError as error:
        _log.error("not closed in order; the next start recovers", directory=directory.path, error=str(error))


async def though_the_disk_fails(work: Coroutine[Any, Any, None]) -> None:
    """A step of a stop. What it could not write costs the next start some time, and nobody any data."""
    try:
        await work
    except BrokerError as error:
        _log.error("the metadata could not be closed in order; the next start recovers", error=str(error))
