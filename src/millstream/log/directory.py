"""One log directory: its lock, its checkpoints, and the folders of its partitions.

The marker of a clean stop is taken away before the first log is opened, and that is made durable (KAFKA-10471): a
crash while logs are being loaded must not find it again, since by then some of them have been written to. It is
written last of all at a stop, and only if every log was closed in order.

Folders with a mark at the end of their name have left service: `-delete` is removed in the background, `-stray` was
not in the metadata, `-future` is a replica that was moving here. Names of topics come from the network; whatever is
not a legal one never becomes a path.

A directory may fail as a whole (KIP-112): then none of its logs is written to any more, and nothing else is done to it
until the next start. Who says so is broker/partitions.py, which knows what the broker can do without.
"""

from __future__ import annotations

import errno
import json
from typing import TYPE_CHECKING

from millstream.log import checkpoints, names
from millstream.log.checkpoints import OffsetCheckpoint
from millstream.log.cutting import NO_SPACE
from millstream.log.log import Log
from millstream.protocol.errors import BrokerError, InconsistentTopicId
from millstream.protocol.uuid import ZERO_UUID

if TYPE_CHECKING:
    from millstream.log.checkpoints import TopicPartition
    from millstream.log.config import LogConfig
    from millstream.log.flushing import SyncTarget
    from millstream.protocol.uuid import Uuid
    from millstream.runtime.ports import Clock, Disk, File, Random

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
METADATA_TOPIC = "__cluster_metadata"
# Errors of a disk that is well: it, a quota, a file or the process has reached a limit.
LIMITS = (*NO_SPACE, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENAMETOOLONG)


class LogDirectory:
    """A directory of `log.dirs`, held by this process. Made by `LogDirectory.open`."""

    def __init__(self, disk: Disk, path: str, clock: Clock, random: Random, lock: File | None) -> None:
        self.disk = disk
        self.path = path
        self._clock = clock
        self._random = random
        self._lock = lock
        # The directory's own id (KIP-858), as its meta.properties says; given by whoever formats directories.
        self.id = ZERO_UUID
        self.failure: OSError | None = None
        self.logs: dict[TopicPartition, Log] = {}
        self.clean = False
        self.clean_broker_epoch = -1
        self.found: dict[TopicPartition, str] = {}
        self.to_remove: list[str] = []
        self._recovery_checkpoint = OffsetCheckpoint(disk, f"{path}/{checkpoints.RECOVERY_POINTS}")
        self._start_checkpoint = OffsetCheckpoint(disk, f"{path}/{checkpoints.LOG_STARTS}")
        self._watermark_checkpoint = OffsetCheckpoint(disk, f"{path}/{checkpoints.HIGH_WATERMARKS}")
        self._cleaner_checkpoint = OffsetCheckpoint(disk, f"{path}/{checkpoints.CLEANER_POINTS}")
        self._recovery_points: dict[TopicPartition, int] = {}
        self._log_starts: dict[TopicPartition, int] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self.cleaner_offsets: dict[TopicPartition, int] = {}

    @classmethod
    def open(cls, disk: Disk, path: str, clock: Clock, random: Random) -> LogDirectory:
        """Take the directory, which is made if it does not exist. BlockingIOError if another process has it."""
        disk.make_directory(path)
        directory = cls(disk, path, clock, random, disk.lock(f"{path}/{LOCK}"))
        try:
            directory._load()
        except BaseException:
            directory._unlock()
            raise
        return directory

    @classmethod
    def unreadable(cls, disk: Disk, path: str, clock: Clock, random: Random, error: OSError) -> LogDirectory:
        """One that could not be opened: failed from the beginning, its id and what it holds are not known."""
        directory = cls(disk, path, clock, random, None)
        directory.failure = error
        return directory

    def fail(self, error: OSError) -> None:
        """Write nothing more to any of its logs."""
        self.failure = self.failure or error
        for log in self.logs.values():
            log.mark_offline(error)

    @property
    def was_opened(self) -> bool:
        return self._lock is not None

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()

    def _load(self) -> None:
        entries = self.disk.list_directory(self.path)
        if CLEAN_SHUTDOWN in entries:
            self.clean = True
            self.clean_broker_epoch = _broker_epoch(self.disk.read_file(f"{self.path}/{CLEAN_SHUTDOWN}"))
            self.disk.remove(f"{self.path}/{CLEAN_SHUTDOWN}")
            self.disk.sync_directory(self.path)
        for entry in entries:
            partition = names.parse_partition_directory(entry)
            if partition is not None and partition[0] != METADATA_TOPIC:
                self.found[partition] = f"{self.path}/{entry}"
            elif entry.endswith(names.DELETE_DIRECTORY) and names.parse_marked_directory(entry) is not None:
                self.to_remove.append(f"{self.path}/{entry}")
        self._recovery_points = self._recovery_checkpoint.read()
        self._log_starts = self._start_checkpoint.read()
        self._high_watermarks = self._watermark_checkpoint.read()
        self.cleaner_offsets = self._cleaner_checkpoint.read()

    # Partitions

    def open_or_create(self, topic: str, partition: int, topic_id: Uuid | None, config: LogConfig) -> Log:
        """The partition's log: opened, recovered after an unclean stop, or begun."""
        key = (topic, partition)
        folder = f"{self.path}/{names.partition_directory(topic, partition)}"
        earlier = self.logs.get(key)
        if earlier is not None and earlier.deleted:
            self.forget(earlier)
        is_new = key not in self.found
        if is_new:
            # A name of its own: whatever the checkpoints say under it was said of an earlier topic.
            self._forget(key)
        try:
            log = self._open(key, folder, topic_id, config, is_new=is_new)
        except InconsistentTopicId:
            self._set_aside(key, folder)
            return self.open_or_create(topic, partition, topic_id, config)
        self.found[key] = folder
        self.logs[key] = log
        return log

    def _open(self, key: TopicPartition, folder: str, topic_id: Uuid | None, config: LogConfig, *, is_new: bool) -> Log:
        log = Log.open(
            self.disk,
            folder,
            config,
            topic_id=topic_id,
            clean=self.clean or is_new,
            recovery_point=self._recovery_points.get(key, 0),
            log_start_offset=self._log_starts.get(key, 0),
            now_ms=self._clock.wall_ms(),
        )
        log.advance_high_watermark(self._high_watermarks.get(key, 0))
        return log

    def _set_aside(self, key: TopicPartition, folder: str) -> str:
        """The folder belongs to a topic of the same name that was deleted while this broker was away."""
        name = names.marked_directory(*key, bytes(self._random.uuid()).hex(), names.STRAY_DIRECTORY)
        self.disk.rename(folder, f"{self.path}/{name}")
        self.disk.sync_directory(self.path)
        self.found.pop(key, None)
        return name

    def set_strays_aside(self) -> list[str]:
        """Folders that nobody opened belong to no topic any more; their new names, for the log. Nothing is deleted.

        Not where the directory has failed: there nobody opened those of living topics either.
        """
        if self.failure is not None:
            return []
        strays = [key for key in self.found if key not in self.logs]
        return [self._set_aside(key, self.found[key]) for key in strays]

    def truncate(self, topic: str, partition: int, offset: int) -> None:
        """Drop what is at or above `offset`; the checkpoints follow: what is written there next was never cleaned."""
        log = self.logs[topic, partition]
        recovery_point = log.recovery_point
        log.truncate_to(offset, self._clock.wall_ms())
        self._checkpoint_cut(log, (topic, partition), offset, recovery_point)

    def start_anew(self, topic: str, partition: int, offset: int) -> None:
        """Drop everything and begin at `offset`."""
        log = self.logs[topic, partition]
        log.truncate_fully_and_start_at(offset, self._clock.wall_ms())
        self._checkpoint_cut(log, (topic, partition), offset, -1)

    def _checkpoint_cut(self, log: Log, key: TopicPartition, offset: int, recovery_point: int) -> None:
        if self.cleaner_offsets.get(key, 0) > offset:
            self.cleaner_offsets[key] = offset
            self.write_cleaner_offsets()
        if recovery_point != log.recovery_point:
            self.write_offset_checkpoints()

    def forget(self, log: Log) -> None:
        """The log was deleted; its offsets leave the checkpoints with the next write."""
        for key, known in list(self.logs.items()):
            if known is log:
                del self.logs[key]
                self.found.pop(key, None)
                self._forget(key)

    def _forget(self, key: TopicPartition) -> None:
        self._recovery_points.pop(key, None)
        self._log_starts.pop(key, None)
        self._high_watermarks.pop(key, None)
        self.cleaner_offsets.pop(key, None)

    # Checkpoints

    def write_offset_checkpoints(self) -> None:
        """Recovery points and log starts of all partitions."""
        starts = self._log_starts.copy()
        for key, log in self._live_logs():
            self._recovery_points[key] = log.recovery_point
            # As in Kafka: a start that the first segment's name tells need not be written down.
            if log.start_offset > log.segments[0].base_offset:
                starts[key] = log.start_offset
            else:
                starts.pop(key, None)
        self._log_starts = starts
        # Starts first: a recovery point says that offsets below it may be trusted, a start that they may not be seen.
        self._start_checkpoint.write(self._log_starts)
        self._recovery_checkpoint.write(self._recovery_points)

    def write_high_watermarks(self) -> None:
        for key, log in self._live_logs():
            self._high_watermarks[key] = log.high_watermark
        self._watermark_checkpoint.write(self._high_watermarks)

    def write_cleaner_offsets(self) -> None:
        self._cleaner_checkpoint.write(self.cleaner_offsets)

    def _live_logs(self) -> list[tuple[TopicPartition, Log]]:
        """All but those that were deleted meanwhile."""
        for key, log in list(self.logs.items()):
            if log.deleted:
                del self.logs[key]
                self.found.pop(key, None)
                self._forget(key)
        return list(self.logs.items())

    def prepare_close(self) -> list[SyncTarget]:
        """Have every log write what a clean stop leaves; returns what has to be synced before `close`.

        One after the other that takes milliseconds per file; several threads at once share the disk's flushes.
        """
        targets: dict[SyncTarget, None] = {}
        for _, log in self._live_logs():
            try:
                targets |= dict.fromkeys(log.prepare_close())
            except BrokerError:
                continue  # it is offline now, which `close` takes into account
        return sorted(targets, key=lambda target: target.is_directory)

    def close(self, broker_epoch: int = -1, *, targets_synced: bool = False) -> None:
        """Close every log; if all of them closed in order, say so for the next start.

        `targets_synced` says that what `prepare_close` returned was synced without an error.
        """
        in_order = True
        for _, log in self._live_logs():
            try:
                if targets_synced and not log.is_offline:
                    log.synced(log.end_offset)
                log.close()
            except BrokerError:
                in_order = False
            in_order = in_order and not log.is_offline
        try:
            if self.failure is not None:
                return
            self.write_offset_checkpoints()
            self.write_high_watermarks()
            if in_order and self._all_were_opened():
                content = json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":"))
                self.disk.replace_file(f"{self.path}/{CLEAN_SHUTDOWN}", content.encode("ascii"))
        finally:
            self._unlock()

    def let_go(self) -> None:
        """Give the directory back as it is: the next owner recovers it."""
        for log in self.logs.values():
            for segment in log.segments:
                segment.close()
        self._unlock()

    def _all_were_opened(self) -> bool:
        """Logs that nobody opened since an unclean stop still have to be recovered."""
        return self.clean or all(key in self.logs for key in self.found)


def _broker_epoch(content: bytes) -> int:
    try:
        return int(json.loads(content)["brokerEpoch"])
    except (ValueError, KeyError, TypeError):
        return -1
