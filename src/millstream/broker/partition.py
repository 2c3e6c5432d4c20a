"""A partition that this broker hosts: its log, its role, and the clients that wait on it.

A replica leads, or follows the leader, or does neither (there is no leader, or its log is offline). Roles come from the
metadata (partitions.py) and belong to one leader epoch.

Appends run synchronously in the request's own call. Where the append itself moves the high watermark (one replica in
sync, no fsync asked for), the answer is written in that same call: no task, no future. acks=all appends
(`when_committed`) and readers (`subscribe`) wait for the high watermark, followers (`subscribe_to_end`) for the end of
the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from millstream.log.producers import Origin
from millstream.protocol.errors import ErrorCode, NotLeader, RecordTooLarge, StorageError
from millstream.records.batch import read_header
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.durability import Durability
    from millstream.broker.wakeups import Wakeups
    from millstream.log.log import Appended, Log
    from millstream.protocol.errors import BrokerError
    from millstream.protocol.uuid import Uuid
    from millstream.replication.follower import PartitionFollower
    from millstream.replication.followers import Follower
    from millstream.replication.leader import IsrProposal, PartitionLeader
    from millstream.runtime.ports import Buffer

_log = Logger("millstream.partition")


class Reader(Protocol):
    """Someone who wants to know when more can be read."""

    def more_to_read(self) -> None: ...


class EndReader(Reader, Protocol):
    """The same for what is not committed yet; hears first of all partitions with news, and then reads once."""

    def news_of(self, partition: Partition) -> None: ...


class Partition:
    """One replica of one partition."""

    __slots__ = (
        "_background", "_committers", "_deleters", "_durability", "_offline_was_told", "_on_offline", "_wakeups",
        "appended_bytes", "committed_more", "end_readers", "follower", "grew", "index", "leader", "log", "readers",
        "role_changes", "topic", "topic_id",
    )  # fmt: skip

    def __init__(
        self,
        topic: str,
        index: int,
        topic_id: Uuid,
        log: Log,
        wakeups: Wakeups,
        on_offline: Callable[[Partition], None],
    ) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        self.leader: PartitionLeader | None = None
        self.follower: PartitionFollower | None = None
        self.role_changes = 0
        # Counts what was ever appended, so that a long poll can tell what came since it looked.
        self.appended_bytes = 0
        self.readers: dict[Reader, None] = {}
        self.end_readers: dict[EndReader, None] = {}
        # Whether those who wait will hear of it in this turn of the loop (wakeups.py).
        self.grew = False
        self.committed_more = False
        self._offline_was_told = False
        self._on_offline = on_offline
        self._wakeups = wakeups
        # Syncs what `flush.messages` asks for; `_durability` is the same where acknowledgements wait for it.
        self._background: Durability
        self._durability: Durability | None = None
        # Lists, since most partitions have nobody here: an empty deque takes 700 bytes.
        self._committers: list[tuple[int, Callable[[], None]]] = []
        self._deleters: list[Callable[[], None]] = []

    # --- roles

    def lead(self, leader: PartitionLeader, durability: Durability, *, sync_before_ack: bool) -> None:
        """Become the leader in a new epoch."""
        self.leader = leader
        self.follower = None
        self.role_changes += 1
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

    def follow(self, follower: PartitionFollower | None) -> None:
        """Follow a leader in a new epoch; None if there is none to follow."""
        self._lead_no_longer()
        self.follower = follower

    def resign(self) -> None:
        """Neither lead nor follow: whoever waits here hears that from the next look."""
        self._lead_no_longer()
        self.follower = None

    def _lead_no_longer(self) -> None:
        self.leader = None
        self.role_changes += 1
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

    def readable(self, current_leader_epoch: int) -> None:
        """Refuse a reader that means another epoch, or that this replica cannot serve: leaders and followers can."""
        if self.leader is not None:
            self.leader.check_epoch(current_leader_epoch)
        elif self.follower is not None:
            self.follower.check_epoch(current_leader_epoch)
        else:
            raise self._not_leading()

    @property
    def waits_for_disk(self) -> bool:
        """Whether what this leader acknowledges is on disk first."""
        return self._durability is not None

    @property
    def leader_epoch(self) -> int:
        if self.leader is not None:
            return self.leader.epoch
        return -1 if self.follower is None else self.follower.epoch

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
        self._wakeups.log_grew(self)
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

    # --- as the leader of others

    def follower_fetched(
        self, follower: Follower, end_offset: int, start_offset: int, broker_epoch: int, now_ms: int
    ) -> None:
        """A follower holds everything below `end_offset`: answers that waited for that go out."""
        leader = self.leader
        assert leader is not None
        start_moved = start_offset != follower.start_offset
        if leader.follower_fetched(
            follower,
            end_offset,
            start_offset=start_offset,
            broker_epoch=broker_epoch,
            leader_end=self.log.end_offset,
            now_ms=now_ms,
        ):
            self._committed()
        if start_moved and self._deleters:
            for listener in self._deleters.copy():
                listener()

    def isr_committed(
        self, isr: tuple[int, ...], partition_epoch: int, replicas: tuple[int, ...] | None = None
    ) -> None:
        """The controller decided who is in sync, in this same leader epoch."""
        assert self.leader is not None
        if self.leader.committed(isr=isr, partition_epoch=partition_epoch, replicas=replicas):
            self._committed()

    def isr_refused(self, proposal: IsrProposal) -> None:
        if self.leader is not None and self.leader.withdraw(proposal):
            self._committed()

    def wait_for_joiner(self, follower: Follower, *, waits: bool) -> None:
        """Let the high watermark wait for a follower that could come into the ISR at once, or no longer."""
        if self.leader is not None and self.leader.waits_for(follower, waits=waits):
            self._committed()

    def min_isr_changed(self, min_isr: int) -> None:
        assert self.leader is not None
        if self.leader.min_isr_changed(min_isr):
            self._committed()

    # --- as a follower

    def append_as_follower(self, records: Buffer, now_ms: int) -> bool:
        """Append what the leader sent, as it came; whether a sync is due (enough records, a new segment)."""
        try:
            self.log.append_as_follower(records, now_ms)
        except StorageError:
            self.went_offline()
            raise
        self.appended_bytes += len(records)
        log = self.log
        return log.end_offset - log.recovery_point >= log.config.flush_messages or (
            log.recovery_point < log.active.base_offset
        )

    def advance_as_follower(self, high_watermark: int) -> None:
        """The leader told how far it is committed."""
        self.log.advance_high_watermark(high_watermark)
        self._wakeups.more_committed(self)

    # --- durable and committed

    def became_durable(self, end_offset: int) -> None:
        """Everything below `end_offset` has been fsynced."""
        if self.leader is not None and self.leader.own_log_reached(end_offset):
            self._committed()

    @property
    def is_offline(self) -> bool:
        return self.log.is_offline

    def is_committed(self, last_offset: int) -> bool:
        return self.log.high_watermark > last_offset

    def why_not_acknowledged(self, last_offset: int) -> ErrorCode:
        """What an append that waits no longer is answered with: NONE if it is committed, and kept by enough replicas.

        To be asked in the very call that ends the wait: later the offset may hold what another leader wrote.
        """
        if self.log.high_watermark > last_offset:
            enough = self.leader is None or self.leader.has_enough_in_sync
            return ErrorCode.NONE if enough else ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        if self.log.is_offline and not self.log.deleted:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if self.leader is None else ErrorCode.REQUEST_TIMED_OUT

    def when_committed(self, last_offset: int, listener: Callable[[], None]) -> None:
        """Call back once `last_offset` is below the high watermark, this broker leads no longer, or an append failed:
        whoever is called looks which."""
        self._committers.append((last_offset, listener))

    def _committed(self) -> None:
        assert self.leader is not None
        high_watermark = self.leader.high_watermark
        self.log.advance_high_watermark(high_watermark)
        committers = self._committers
        # Appends wait in offset order, so the first that is not committed ends the search.
        while committers and committers[0][0] < high_watermark:
            committers.pop(0)[1]()
        self._wakeups.more_committed(self)

    # --- waiting

    def subscribe(self, reader: Reader) -> None:
        self.readers[reader] = None

    def subscribe_to_end(self, reader: EndReader) -> None:
        """For followers, who read what is not committed yet."""
        self.end_readers[reader] = None

    def unsubscribe(self, reader: Reader) -> None:
        self.readers.pop(reader, None)

    def unsubscribe_from_end(self, reader: EndReader) -> None:
        self.end_readers.pop(reader, None)

    def start_moved(self) -> None:
        """Records were deleted here: followers hear of it with their next answer, or they would bring them back."""
        self._wakeups.log_grew(self)

    def watch_low_watermark(self, listener: Callable[[], None]) -> None:
        """Call whenever a follower's log begins elsewhere, or this broker leads no longer, until `unwatch…`."""
        self._deleters.append(listener)

    def unwatch_low_watermark(self, listener: Callable[[], None]) -> None:
        if listener in self._deleters:
            self._deleters.remove(listener)

    def went_offline(self) -> None:
        """The log failed: those who wait shall look again and hear it, and whoever runs this broker, once."""
        if not self._offline_was_told:
            self._offline_was_told = True
            _log.error("a partition is offline", topic=self.topic, partition=self.index, error=str(self.log.failure))
            self._on_offline(self)
        self._release_everyone()

    def _release_everyone(self) -> None:
        # Taken out one by one, each before it is called: this may be the call of one of them, inside of `_committed`.
        committers, self._committers = self._committers, []
        while committers:
            committers.pop(0)[1]()
        for listener in self._deleters.copy():
            listener()
        self._wakeups.log_grew(self)
        self._wakeups.more_committed(self)
