"""One partition's log: segments in a folder, and what is known of their content.

The class holds the state and answers what can be answered from memory; what goes to files has a module of its own:
`loading` (opening and recovery), `appending` (as leader and as follower), `rolling`, `reading`, `lookup` (timestamps,
aborted transactions), `cutting` (truncation, retention, DeleteRecords), `flushing` (what fsync has to reach). All of it
is synchronous and belongs to one thread; only a sync target may run in another.

Offsets:  start_offset <= last_stable_offset <= high_watermark <= end_offset, and recovery_point <= end_offset: what
lies below it was synced, so a start after a crash scans from there.

An OSError while writing takes the log offline (KAFKA-10778): a part of the batch may be in the file, and a batch
behind it would make that part look like data. Later appends get KAFKA_STORAGE_ERROR, reads go on, since they never
look behind `end_offset`; the next start finds the torn batch and cuts it off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.log import appending, cutting, following, loading, lookup, reading, rolling
from millstream.log.appending import Appended
from millstream.log.flushing import Unsynced
from millstream.log.producers import Origin, ProducerStates
from millstream.log.reading import RecentlyOpened, Slice, Stretch
from millstream.protocol.errors import StorageError

if TYPE_CHECKING:
    from millstream.log.config import LogConfig
    from millstream.log.cutting import Removal
    from millstream.log.epochs import EpochStart, LeaderEpochs
    from millstream.log.flushing import SyncTarget
    from millstream.log.lookup import FoundOffset
    from millstream.log.segment import Segment
    from millstream.protocol.uuid import Uuid
    from millstream.runtime.ports import Buffer, Disk

__all__ = ["Appended", "Log", "Origin", "Slice"]


# Below it, one copy is cheaper than a system call of its own.
STRETCH_BYTES_MIN = 64 * 1024


class Log:
    """One partition on disk. Made by `Log.open`."""

    active: Segment
    epochs: LeaderEpochs

    def __init__(self, disk: Disk, directory: str, config: LogConfig, topic_id: Uuid | None) -> None:
        self.disk = disk
        self.directory = directory
        self.topic_id = topic_id
        self.reconfigure(config)
        self.segments: list[Segment] = []
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        # The last batch of the active segment, if it is small and was appended as leader, and its offset: see `read`.
        self.newest = b""
        self.newest_offset = -1
        self.recovery_point = 0
        self.producers = ProducerStates()
        self.snapshots: list[int] = []
        self.opened = RecentlyOpened()
        self.unsynced = Unsynced(disk, directory)
        self.removals: list[Removal] = []
        self.failure: OSError | None = None
        self.closed = False
        self.deleted = False
        self._clean_seen_ms = -1

    @classmethod
    def open(
        cls,
        disk: Disk,
        directory: str,
        config: LogConfig,
        *,
        topic_id: Uuid | None,
        clean: bool,
        recovery_point: int,
        log_start_offset: int,
        now_ms: int,
    ) -> Log:
        """Open the folder, or begin it. `clean` says that the last owner stopped in order: then nothing is scanned."""
        log = cls(disk, directory, config, topic_id)
        loading.load(log, clean=clean, recovery_point=recovery_point, log_start_offset=log_start_offset, now_ms=now_ms)
        return log

    def reconfigure(self, config: LogConfig) -> None:
        """Live from the next append, roll or retention on."""
        self.config = config
        self.rules = config.rules()
        self.stored_codec = config.codec()
        # Whether a valid batch goes into the file with no other change than its offset and epoch.
        self.is_plain = self.stored_codec is None and not config.log_append_time

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self.segments)

    # High watermark and last stable offset

    def advance_high_watermark(self, offset: int) -> None:
        """Everything below `offset` is committed. It never goes back, except by truncation."""
        if offset > self.high_watermark:
            self.high_watermark = min(offset, self.end_offset)
            self.producers.replicated_to(self.high_watermark)

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is decided: as far as readers of committed records may look."""
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.start_offset)

    # Writing

    def append_as_leader(
        self,
        records: Buffer,
        leader_epoch: int,
        now_ms: int,
        *,
        origin: Origin = Origin.CLIENT,
        version_allows_zstd: bool = True,
    ) -> Appended:
        """Check, stamp and write; nothing of `records` is kept."""
        return appending.append_as_leader(
            self, records, leader_epoch, now_ms, origin=origin, version_allows_zstd=version_allows_zstd
        )

    def append_as_follower(self, records: Buffer, now_ms: int = -1) -> Appended | None:
        """Write what the leader sent, with its offsets and epochs; None if it held no whole batch."""
        return following.append_as_follower(self, records, now_ms)

    def roll(self, now_ms: int) -> Segment:
        """Close the active segment and begin one at the end of the log."""
        return rolling.roll(self, self.end_offset, now_ms)

    # Reading

    def read(self, offset: int, max_bytes: int, upto_offset: int, *, at_least_one_batch: bool) -> bytes | None:
        """Whole batches from the one that holds `offset`, below `upto_offset`; None if there are none.

        Who waited at the end of the log wants the batch that was just appended: that takes no look into the file.
        """
        if offset == self.end_offset == upto_offset and not self.closed:
            return None
        if offset == self.newest_offset and self._is_newest_enough(max_bytes, upto_offset):
            return self.newest
        found = self.find(offset, max_bytes, upto_offset, at_least_one_batch=at_least_one_batch)
        try:
            return None if found is None else found.read()
        except OSError as error:
            raise self._unreadable(error) from error

    def read_or_stretch(
        self, offset: int, max_bytes: int, upto_offset: int, *, at_least_one_batch: bool
    ) -> bytes | Stretch | None:
        """As `read`; but what is large stays in its file, where the operating system can send it from there."""
        if offset == self.end_offset == upto_offset and not self.closed:
            return None
        if offset == self.newest_offset and self._is_newest_enough(max_bytes, upto_offset):
            return self.newest
        found = self.find(offset, max_bytes, upto_offset, at_least_one_batch=at_least_one_batch)
        if found is None:
            return None
        if found.length >= STRETCH_BYTES_MIN and (descriptor := found.file.descriptor()) is not None:
            return Stretch(descriptor, found.position, found.length)
        try:
            return found.read()
        except OSError as error:
            raise self._unreadable(error) from error

    def _is_newest_enough(self, max_bytes: int, upto_offset: int) -> bool:
        """Whether the batch that was appended last is all of an answer that begins with it."""
        return (
            0 < len(self.newest) <= max_bytes
            and upto_offset == self.end_offset
            and self.start_offset <= self.newest_offset
            and not self.closed
        )

    def find(self, offset: int, max_bytes: int, upto_offset: int, *, at_least_one_batch: bool) -> Slice | None:
        """The same as a stretch of a file, for those who send it without reading it."""
        if self.closed:
            raise self.offline_error()
        try:
            return reading.find(self, offset, max_bytes, upto_offset, at_least_one_batch=at_least_one_batch)
        except OSError as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: OSError) -> StorageError:
        """One place cannot be read: others may be, so the log stays."""
        return StorageError(f"the log in {self.directory} cannot be read there: {error}")

    def aborted_transactions(self, start_offset: int, upto_offset: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of what a reader of committed records has to leave out, in offset order."""
        return lookup.aborted_transactions(self, start_offset, upto_offset)

    def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record that is not older than `timestamp`."""
        return lookup.offset_for_timestamp(self, timestamp)

    def offset_of_max_timestamp(self) -> FoundOffset | None:
        """The first record that has the largest timestamp of all."""
        return lookup.offset_of_max_timestamp(self)

    def earliest(self) -> FoundOffset:
        return lookup.earliest(self)

    def latest(self, upto_offset: int) -> FoundOffset:
        return lookup.latest(self, upto_offset)

    @property
    def latest_epoch(self) -> int:
        """Of the last leader that is known to have begun; -1 if none is."""
        return self.epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> EpochStart:
        """The largest epoch up to `epoch`, and where it ended; (-1, -1) if that is not known."""
        return self.epochs.end_offset_for(epoch, self.end_offset)

    # Getting shorter

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Drop what is at or above `offset`. Write the recovery checkpoint afterwards: what it says may be gone."""
        cutting.truncate_to(self, offset, now_ms)

    def take_back_what_did_not_fit(self, offset: int, now_ms: int) -> bool:
        """An append failed on a full disk: be again what it was when it ended at `offset`; False if that cannot be."""
        return cutting.take_back_what_did_not_fit(self, offset, now_ms)

    def truncate_fully_and_start_at(self, offset: int, now_ms: int) -> None:
        cutting.truncate_fully_and_start_at(self, offset, now_ms)

    def advance_start_offset(self, offset: int) -> bool:
        """DeleteRecords: what is below `offset` is gone for readers at once, from the disk with the next retention."""
        return cutting.advance_start_offset(self, offset)

    def enforce_retention(self, now_ms: int) -> int:
        """Delete whole segments by age, size and start offset; returns how many. `remove_due` frees the space."""
        return cutting.enforce_retention(self, now_ms)

    def remove_due(self, now_ms: int) -> int | None:
        """Remove files whose delay is over; returns when the next ones are due, None if there are none."""
        return cutting.remove_due(self, now_ms)

    # Durability

    def sync_targets(self) -> list[SyncTarget]:
        """What has to be synced, each by its `sync()`, in any thread; then say so with `synced(end_offset)`."""
        return self.unsynced.targets(self)

    def synced(self, end_offset: int) -> None:
        """All targets were synced; `end_offset` is what it was when they were asked for."""
        self.recovery_point = max(self.recovery_point, self.unsynced.confirm(end_offset))

    def flush(self) -> None:
        """Sync everything, here and now."""
        end_offset = self.end_offset
        try:
            for target in self.sync_targets():
                target.sync()
        except OSError as error:
            self.mark_offline(error)
            raise self.offline_error() from error
        self.synced(end_offset)

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether something has waited for `flush.ms` (as seen by whoever asks regularly) or `flush.messages`."""
        if self.recovery_point >= self.end_offset or self._clean_seen_ms < 0:
            self._clean_seen_ms = now_ms
        waiting = self.end_offset - self.recovery_point
        return waiting > 0 and (
            now_ms - self._clean_seen_ms >= self.config.flush_ms or waiting >= self.config.flush_messages
        )

    def expire_producers(self, now_ms: int) -> int:
        """Forget producers that were silent for `producer.id.expiration.ms`."""
        return self.producers.expire(now_ms, self.config.producer_id_expiration_ms)

    # Failing and closing

    @classmethod
    def unopened(cls, disk: Disk, directory: str, config: LogConfig, topic_id: Uuid | None, error: OSError) -> Log:
        """A log whose files could not be made or opened: offline from the beginning, and empty."""
        log = cls(disk, directory, config, topic_id)
        log.failure = error
        return log

    @property
    def is_offline(self) -> bool:
        return self.failure is not None

    def mark_offline(self, error: OSError) -> None:
        """Nothing more is written: nobody knows what the disk has done."""
        if self.failure is None:
            self.failure = error

    def offline_error(self) -> StorageError:
        why = self.failure or "it was closed"
        return StorageError(f"the log in {self.directory} is offline: {why}")

    def prepare_close(self) -> list[SyncTarget]:
        """Write what a clean stop leaves; if the targets are synced and `synced` is called, `close` finds no work."""
        if self.failure is not None or self.closed:
            return []
        rolling.write_for_close(self)
        return self.sync_targets()

    def close(self) -> None:
        """Stop in order: everything synced, indexes whole, producers in a snapshot. An offline log is only let go."""
        rolling.close(self)

    def delete(self, unique: str) -> str:
        """Let go of the files and rename the folder, so that it no longer counts; the caller removes it in the end."""
        return cutting.delete(self, unique)
