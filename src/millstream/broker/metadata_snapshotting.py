"""When the metadata log is snapshotted, and what may go once it was.

Kafka's triggers: `metadata.log.max.record.bytes.between.snapshots` bytes of records, or `metadata.log.max.snapshot.
interval.ms` after the first record since the last one. A snapshot is written from an immutable image a batch at a time,
between which the event loop does other things; the files are synced in a thread.

Then the retention of metadata: an older snapshot goes if it has outlived `metadata.max.retention.ms`, or while
snapshots and log together exceed `metadata.max.retention.bytes`. The newest always stays. The log begins where the
oldest snapshot ends, in whole segments.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from millstream.broker.metadata_snapshot import (
    CHECKPOINT,
    PART,
    SnapshotId,
    list_snapshots,
    read_snapshot,
    snapshot_batches,
)
from millstream.metadata.snapshot import snapshot_records
from millstream.quorum.voters import STATIC
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.metadata_log import MetadataLog, MetadataLogConfig
    from millstream.metadata.image import MetadataImage
    from millstream.runtime.ports import File, Ports


_log_events = Logger("millstream.metadata")


class Snapshotting:
    """Watches the growth of one metadata log. `image` gives the newest committed image."""

    def __init__(
        self, ports: Ports, log: MetadataLog, config: MetadataLogConfig, image: Callable[[], MetadataImage]
    ) -> None:
        self._ports = ports
        self._log = log
        self._config = config
        self._image = image
        self._bytes = log.replayed.bytes_since_snapshot
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Task[SnapshotId] | None = None
        self._closed = False
        # When each snapshot's last record was written, for retention by age; read from its header once.
        self._times: dict[SnapshotId, int] = {}

    def committed(self, size: int) -> None:
        """`size` more bytes of records are committed."""
        if size:
            self._bytes += size
        if self._closed or self._writing is not None or not self._bytes:
            return
        if self._bytes >= self._config.record_bytes_between_snapshots_max:
            self._begin()
        elif self._timer is None and self._config.snapshot_interval_max_ms > 0:
            delay_s = self._config.snapshot_interval_max_ms / 1000
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._interval_over)

    def _interval_over(self) -> None:
        self._timer = None
        if not self._closed and self._writing is None and self._bytes:
            self._begin()

    def _begin(self) -> None:
        image = self._image()
        if image.pending is not None:
            # In the middle of a metadata transaction there is no image to write; the next commit asks again.
            return
        self._start(image)

    def _start(self, image: MetadataImage) -> asyncio.Task[SnapshotId]:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._bytes = 0
        self._writing = writing = asyncio.get_running_loop().create_task(self.write(image))
        writing.add_done_callback(self._written)
        return writing

    def _written(self, task: asyncio.Task[SnapshotId]) -> None:
        self._writing = None
        if not task.cancelled() and (error := task.exception()) is not None:
            # The log still holds everything, so nothing is lost; the next trigger tries again.
            _log_events.error("a metadata snapshot failed", directory=self._log.directory, error=str(error))
            return
        self.committed(0)

    async def take(self) -> SnapshotId:
        """Write a snapshot of what is committed now, whatever the triggers say."""
        while self._writing is not None:
            await asyncio.wait((self._writing,))
        image = self._image()
        assert image.pending is None, "a metadata transaction is open"
        return await self._start(image)

    async def write(self, image: MetadataImage) -> SnapshotId:
        """Write a snapshot of `image`, then let go of what it made superfluous."""
        disk = self._ports.disk
        snapshot = SnapshotId(image.offset + 1, image.epoch)
        path = f"{self._log.directory}/{snapshot.file_name}"
        part = path.removesuffix(CHECKPOINT) + PART
        # Those of the image's own offset: newer ones may not be committed yet.
        voters = self._log.files.history.at(image.offset)
        batches = snapshot_batches(
            snapshot_records(image),
            level=image.metadata_version,
            epoch=image.epoch,
            last_contained_ms=image.timestamp_ms,
            now_ms=self._ports.clock.wall_ms(),
            voters=None if voters.kraft_version == STATIC else voters.voters,
        )
        file = disk.create(part)
        try:
            for batch in batches:
                file.append(batch)
                await asyncio.sleep(0)
            await self._ports.workers.in_thread(_sync, file)
        finally:
            file.close()
        disk.rename(part, path)
        await self._ports.workers.in_thread(disk.sync_directory, self._log.directory)
        self.clean()
        return snapshot

    def clean(self) -> None:
        """Apply the retention settings: see the module's docstring."""
        disk, files, directory = self._ports.disk, self._log.files, self._log.directory
        snapshots = list_snapshots(disk, directory)
        size = self._log.log.size_bytes + sum(disk.size(f"{directory}/{each.file_name}") for each in snapshots)
        now_ms = self._ports.clock.wall_ms()
        files.snapshots = snapshots
        while len(snapshots) > 1:
            oldest = snapshots[0]
            too_old = 0 <= self._config.retention_ms_max < now_ms - self._time_of(oldest)
            if not too_old and size <= self._config.retention_bytes_max:
                return
            snapshots.pop(0)
            path = f"{directory}/{oldest.file_name}"
            size -= disk.size(path)
            disk.remove(path)
            self._times.pop(oldest, None)
            size -= files.forget_before(snapshots[0].end_offset)

    def _time_of(self, snapshot: SnapshotId) -> int:
        known = self._times.get(snapshot)
        if known is None:
            content = self._ports.disk.read_file(f"{self._log.directory}/{snapshot.file_name}")
            known = self._times[snapshot] = read_snapshot(content).timestamp_ms
        return known

    async def close(self) -> None:
        """No new snapshot begins; one that is being written is finished."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            await asyncio.wait((self._writing,))


def _sync(file: File) -> None:
    file.sync()
