"""A partition that this broker hosts: its log, its role, and the clients that wait on it.

Appends run synchronously in the request's own call. Where the append itself moves the high watermark (one replica in
sync, no fsync asked for), the answer is written in that same call: no task, no future. Everything that waits, waits
for the high watermark: acks=all appends (`when_committed`), and long polls (`subscribe`).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Protocol

from millstream.log.producers import Origin
from millstream.protocol.errors import NotLeader, RecordTooLarge, StorageError
from millstream.records.batch import read_header
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.durability import Durability
    from millstream.broker.wakeups import Wakeups
    from millstream.log.log import Appended, Log
    from millstream.protocol.errors import BrokerError
    from millstream.protocol.uuid import Uuid
    from millstream.replication.leader import PartitionLeader
    from millstream.runtime.ports import Buffer

_log = Logger("millstream.partition")


class Reader(Protocol):
    """Someone who wants to know when more can be read."""

    def more_to_read(self) -> None: ...


class Partition:
    """One replica of one partition."""

    __slots__ = (
        "_background", "_committers", "_durability", "_offline_was_told", "_wakeups", "appended_bytes", "index",
        "is_marked", "leader", "log", "readers", "topic", "topic_id",
    )  # fmt: skip

    def __init__(self, topic: str, index: int, topic_id: Uuid, log: Log, wakeups: Wakeups) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.leader: PartitionLeader | None = None
        # Counts what was ever appended, so that a long poll can tell what came since it looked.
        self.appended_bytes = 0
        self.readers: dict[Reader, None] = {}
        self.is_marked = False
        self._offline_was_told = False
        self._wakeups = wakeups
        # Syncs what `flush.messages` asks for; `_durability` is the same where acknowledgements wait for it.
        self._background: Durability
        self._durability: Durability | None = None
        self._committers: deque[tuple[int, Callable[[], None]]] = deque()

    # --- roles

    def lead(self, leader: PartitionLeader, durability: Durability, *, sync_before_ack: bool) -> None:
        """Become the leader in a new epoch."""
        self.leader = leader
        self._background = durability
        self._durability = durability if sync_before_ack else None
        self.log.epochs.assign(leader.epoch, self.log.end_offset)
        self._commit_what_may_be()

    def sync_before_ack_changed(self, *, sync_before_ack: bool) -> None:
        """The topic's owner wants acknowledgements to wait for the disk, or no longer."""
        if sync_before_ack != (self._durability is not None):
            self._durability = self._background if sync_before_ack else None
            self._commit_what_may_be()

    def _commit_what_may_be(self) -> None:
        assert self.leader is not None
        if self._durability is None:
            self.leader.own_log_reached(self.log.end_offset)
        else:
            # What was synced before counts at once: nothing may be written that would sync it again.
            self.leader.own_log_reached(self.log.recovery_point)
            self._durability.make_durable(self)
        self._committed()

    def isr_changed(self, isr: tuple[int, ...]) -> None:
        """The controller committed another set of in-sync replicas for this same epoch."""
        assert self.leader is not None
        if self.leader.isr_changed(isr):
            self._committed()

    def resign(self) -> None:
        """Lead no longer: whoever waits here hears that from the next look."""
        self.leader = None
        self._release_everyone()

    def leading(self, current_leader_epoch: int = -1) -> PartitionLeader:
        """The leader, if this broker is it and the client means the same epoch."""
        leader = self.leader
        if leader is None:
            raise self._not_leading()
        if current_leader_epoch != -1:
            leader.check_epoch(current_leader_epoch)
        return leader

    def _not_leading(self) -> BrokerError:
        if self.log.is_offline and not self.log.deleted:
            return self.log.offline_error()
        return NotLeader(f"this broker does not lead {self.topic}-{self.index}")

    @property
    def leader_epoch(self) -> int:
        return -1 if self.leader is None else self.leader.epoch

    # --- writing

    def append(
        self, records: Buffer, acks: int, now_ms: int, *, zstd_allowed: bool = True, origin: Origin = Origin.CLIENT
    ) -> Appended:
        """Append as the leader. The caller asks `is_committed` whether it has to wait."""
        leader = self.leader
        if leader is None:
            raise self._not_leading()
        if acks == -1:
            leader.check_enough_in_sync()
        log = self.log
        try:
            appended = log.append_as_leader(
                records, leader.epoch, now_ms, origin=origin, version_allows_zstd=zstd_allowed
            )
        except StorageError:
            self.went_offline()
            raise
        self.appended_bytes += len(records)
        if self._durability is not None:
            self._durability.make_durable(self)
        else:
            if leader.own_log_reached(log.end_offset):
                self._committed()
            unsynced = log.end_offset - log.recovery_point
            if unsynced >= log.config.flush_messages or log.recovery_point < log.active.base_offset:
                # As many as the topic allows, or a segment that was rolled: closed segments are always synced.
                self._background.make_durable(self)
        return appended

    def append_internal(self, batch: bytearray, now_ms: int) -> int:
        """Append what a coordinator of this broker wrote, as strictly as acks=all; the last record's offset."""
        limit = self.log.config.max_message_bytes
        # What belongs together (the tombstones of a large group) is written together, but one record keeps the limit.
        if len(batch) > limit and read_header(batch).count == 1:
            raise RecordTooLarge(f"a coordinator's record of {len(batch)} bytes, where max.message.bytes is {limit}")
        return self.append(batch, -1, now_ms, origin=Origin.COORDINATOR).last_offset

    def became_durable(self, end_offset: int) -> None:
        """Everything below `end_offset` has been fsynced."""
        if self.leader is not None and self.leader.own_log_reached(end_offset):
            self._committed()

    def is_committed(self, last_offset: int) -> bool:
        return self.log.high_watermark > last_offset

    def when_committed(self, last_offset: int, listener: Callable[[], None]) -> None:
        """Call back once `last_offset` is below the high watermark, or this broker leads no longer."""
        self._committers.append((last_offset, listener))

    def _committed(self) -> None:
        assert self.leader is not None
        high_watermark = self.leader.high_watermark
        self.log.advance_high_watermark(high_watermark)
        committers = self._committers
        # Appends wait in offset order, so the first that is not committed ends the search.
        while committers and committers[0][0] < high_watermark:
            committers.popleft()[1]()
        if self.readers and not self.is_marked:
            self._wakeups.mark(self)

    # --- waiting

    def subscribe(self, reader: Reader) -> None:
        self.readers[reader] = None

    def unsubscribe(self, reader: Reader) -> None:
        self.readers.pop(reader, None)

    def went_offline(self) -> None:
        """The log failed: those who wait shall look again and hear it, and whoever runs this broker, once."""
        if not self._offline_was_told:
            self._offline_was_told = True
            _log.error("a partition is offline", topic=self.topic, partition=self.index, error=str(self.log.failure))
        self._release_everyone()

    def _release_everyone(self) -> None:
        committers, self._committers = self._committers, deque()
        for _, listener in committers:
            listener()
        if self.readers and not self.is_marked:
            self._wakeups.mark(self)
