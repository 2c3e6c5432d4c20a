"""Followers: one fetcher for each leader that this broker follows, whose answers become changes of its logs.

(`num.replica.fetchers` of them, each for its share of the partitions. They share one event loop, so that more than one
helps where a connection is slow, and not where a processor is.)

A fetcher asks its leader for all partitions at once, in a fetch session, and waits at the leader for more to come. What
an answer calls for is the follower's rules' to say (replication/follower.py); batches are appended as they came, byte
for byte. A partition that its leader refuses is left out for a while; a leader that cannot be reached is tried again,
at growing intervals.

New work does not wait for a fetch that is waiting: it is sent behind it, and the leader answers the one before (see
handlers/fetch.py). So a leader that was just elected hears of its followers at once.

Where acknowledgements wait for the disk, a follower's do as well: it asks for what comes next, which is what tells the
leader what it has, when that is synced.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from millstream.broker.peers import PeerUnreachable
from millstream.broker.replica_fetch_session import Asked, ReplicaFetchSession
from millstream.broker.replica_logs import ReplicaLogs
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.protocol.messages.fetch import FetchRequest, ReplicaState
from millstream.replication.follower import AskForOffsets, AwaitMetadata, TryAgainLater
from millstream.runtime.logs import Logger
from millstream.settings import (
    NUM_REPLICA_FETCHERS,
    REPLICA_FETCH_BACKOFF_MS,
    REPLICA_FETCH_MAX_BYTES,
    REPLICA_FETCH_MIN_BYTES,
    REPLICA_FETCH_RESPONSE_MAX_BYTES,
    REPLICA_FETCH_WAIT_MAX_MS,
    REPLICA_SOCKET_TIMEOUT_MS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.broker.node import Node
    from millstream.broker.partition import Partition
    from millstream.broker.peers import Peer
    from millstream.broker.replica_fetch_session import Key
    from millstream.protocol.messages.fetch import FetchResponse, PartitionData
    from millstream.replication.follower import PartitionFollower, Position

_log = Logger("millstream.replication")

PURPOSE = "replicate"
_VERSION = 17
# The first pause after a failure; it doubles up to replica.fetch.backoff.ms.
_BACKOFF_MIN_MS = 20


class ReplicaFetchers:
    """All fetchers of this broker, by the leader that they ask and their number."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._fetchers: dict[tuple[int, int], _Fetcher] = {}
        self._stopped = False

    def follow(self, partition: Partition) -> None:
        """Fetch the partition from the leader that it follows, in its epoch."""
        self.unfollow(partition)
        assert partition.follower is not None
        place = self._place(partition, partition.follower)
        fetcher = self._fetchers.get(place)
        if fetcher is None:
            if self._stopped:
                return
            fetcher = self._fetchers[place] = _Fetcher(self._node, *place)
        fetcher.add(partition, partition.follower)

    def _place(self, partition: Partition, follower: PartitionFollower) -> tuple[int, int]:
        share = (crc32(partition.topic.encode()) + partition.index) % self._node.settings[NUM_REPLICA_FETCHERS]
        return follower.leader_id, share

    def settings_changed(self) -> None:
        """There may be more fetchers now, or fewer."""
        for partition in self._node.partitions:
            if partition.follower is not None:
                fetcher = self._fetchers.get(self._place(partition, partition.follower))
                if fetcher is None or not fetcher.follows(partition):
                    self.follow(partition)

    def unfollow(self, partition: Partition) -> None:
        for fetcher in self._fetchers.values():
            fetcher.remove(partition)

    def brokers_changed(self, broker_ids: Iterable[int]) -> None:
        """Those brokers may have other addresses now, or be back: nothing is gained by waiting."""
        for broker_id in broker_ids:
            for (leader_id, _), fetcher in self._fetchers.items():
                if leader_id == broker_id:
                    fetcher.try_now()

    async def stop(self) -> None:
        self._stopped = True
        await asyncio.gather(*(fetcher.stop() for fetcher in self._fetchers.values()))
        self._fetchers.clear()


class _Pending(NamedTuple):
    """A fetch that is under way."""

    generation: int
    before: dict[Key, Asked | None]
    """What the leader had been told before this of what it names."""
    asking: asyncio.Future[FetchResponse]


class _Followed:
    """One partition of a fetcher."""

    __slots__ = ("failures", "follower", "partition", "retry", "syncing")

    def __init__(self, partition: Partition, follower: PartitionFollower) -> None:
        self.partition = partition
        self.follower = follower
        self.failures = 0
        self.retry: asyncio.TimerHandle | None = None
        self.syncing: asyncio.Task[None] | None = None

    @property
    def is_left_out(self) -> bool:
        return self.retry is not None or self.syncing is not None


class _Fetcher:
    """Asks one leader."""

    def __init__(self, node: Node, leader_id: int, number: int) -> None:
        self._node = node
        self._leader_id = leader_id
        self._purpose = f"{PURPOSE}-{number}"
        self._logs = ReplicaLogs(node)
        self._loop = asyncio.get_running_loop()
        self._followed: dict[Key, _Followed] = {}
        # What has to be told to the leader with the next request.
        self._changed: dict[Key, None] = {}
        self._session = ReplicaFetchSession(node.settings[REPLICA_FETCH_MAX_BYTES])
        self._pending: deque[_Pending] = deque()
        self._nudging = False
        self._taking = False
        # A leader without room for our session makes every fetch a first one.
        self._without_session = False
        self._failures = 0
        self._peer: Peer | None = None  # until the metadata tell something of the leader, or it cannot be reached
        self._wake = asyncio.Event()
        self._task = self._loop.create_task(self._run())

    # --- what to follow

    def add(self, partition: Partition, follower: PartitionFollower) -> None:
        key = (partition.topic_id, partition.index)
        self._followed[key] = _Followed(partition, follower)
        self._tell(key)

    def _must_sync_first(self, key: Key, followed: _Followed) -> bool:
        """Whether a fetch would speak for what is not on disk; then it is synced, and told after that.

        A killed process leaves such records, a time as the leader, and an answer that was not taken to its end.
        """
        if not self._logs.waits_for_sync(followed.partition):
            return False
        followed.syncing = self._loop.create_task(self._tell_when_synced(key, followed))
        return True

    async def _tell_when_synced(self, key: Key, followed: _Followed) -> None:
        await self._node.durability.sync(followed.partition)
        followed.syncing = None
        if self._followed.get(key) is followed:
            self._tell(key)

    def remove(self, partition: Partition) -> None:
        key = (partition.topic_id, partition.index)
        followed = self._followed.pop(key, None)
        if followed is not None:
            if followed.retry is not None:
                followed.retry.cancel()
            self._changed[key] = None

    def follows(self, partition: Partition) -> bool:
        return (partition.topic_id, partition.index) in self._followed

    def try_now(self) -> None:
        self._peer = None
        self._failures = 0
        self._wake.set()

    async def stop(self) -> None:
        for followed in self._followed.values():
            if followed.retry is not None:
                followed.retry.cancel()
        self._task.cancel()
        syncing = [followed.syncing for followed in self._followed.values() if followed.syncing is not None]
        await asyncio.gather(self._task, *syncing, return_exceptions=True)
        self._abandon()

    def _tell(self, key: Key) -> None:
        """The leader should know of this soon, whatever it is waiting for."""
        self._changed[key] = None
        self._wake.set()
        if self._pending and not self._nudging:
            # What comes in this turn of the loop goes together.
            self._nudging = True
            self._loop.call_soon(self._nudge)

    def _nudge(self) -> None:
        self._nudging = False
        if self._pending and not self._taking:
            try:
                self._send_changes()
            except PeerUnreachable:
                return  # the fetch that waits will end with the same

    # --- asking

    async def _run(self) -> None:
        while True:
            try:
                await self._converse()
            except (PeerUnreachable, BrokerError) as error:
                if self._failures == 0:
                    _log.warning("a leader cannot be followed", leader=self._leader_id, error=str(error))
            except Exception as error:  # noqa: BLE001  # one answer that trips us up must not end replication
                _log.error("replication failed", leader=self._leader_id, exc_info=error)
            self._abandon()
            await self._pause()

    async def _converse(self) -> None:
        while True:
            self._send_changes()
            if not self._pending:
                self._wake.clear()
                await self._wake.wait()
                continue
            pending = self._pending[0]
            answer = await pending.asking
            self._pending.popleft()
            if pending.generation == self._session.generation:
                self._taking = True
                try:
                    await self._take(answer)
                finally:
                    self._taking = False

    def _send_changes(self) -> None:
        """Ask, if nobody is asked, or if there is something new to ask for and only one fetch before it."""
        if not self._pending or (self._changed and len(self._pending) == 1 and not self._session.waits_for_id):
            self._send()

    async def _pause(self) -> None:
        """Longer after each failure; news about the leader end it."""
        pause_ms = self._backoff_ms(self._failures)
        self._failures += 1
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_ms / 1000):
                await self._wake.wait()

    def _backoff_ms(self, failures: int) -> int:
        longest = self._node.settings[REPLICA_FETCH_BACKOFF_MS]
        return min(longest, _BACKOFF_MIN_MS << min(failures, 10))

    def _abandon(self) -> None:
        self._session.give_up()
        for pending in self._pending:
            if not pending.asking.cancel() and not pending.asking.cancelled():
                pending.asking.exception()  # looked at: it is the reason, or one like it, why we are here
        self._pending.clear()
        self._peer = None

    def _leader(self) -> Peer:
        if self._peer is None:
            address = self._node.endpoint_of(self._leader_id)
            if address is None:
                raise PeerUnreachable(f"broker {self._leader_id} is not registered")
            self._peer = self._node.peers.at(*address, self._purpose)
        return self._peer

    def _send(self) -> None:
        """Ask for what there is to follow, if there is anything."""
        leader = self._leader()
        keys = self._followed if self._session.is_new else self._changed
        wanted, forgotten = {}, []
        for key in keys:
            followed = self._followed.get(key)
            if followed is None or followed.is_left_out or self._must_sync_first(key, followed):
                forgotten.append(key)
            else:
                log = followed.partition.log
                wanted[key] = Asked(followed.follower.position(log), log.start_offset)
        self._changed = {}
        if not wanted and not self._session.asked:
            return
        settings = self._node.settings
        wait_ms = settings[REPLICA_FETCH_WAIT_MAX_MS]
        # The first answer brings the session, to which more can be added while a fetch waits: it comes at once.
        begins = self._session.is_new and not self._without_session
        request = FetchRequest(
            replica_state=ReplicaState(replica_id=self._node.node_id, replica_epoch=self._node.broker_epoch),
            max_wait_ms=0 if begins else wait_ms,
            min_bytes=settings[REPLICA_FETCH_MIN_BYTES],
            max_bytes=settings[REPLICA_FETCH_RESPONSE_MAX_BYTES],
            topics=[],
        )
        before = self._session.fill(request, wanted, forgotten)
        timeout_ms = max(settings[REPLICA_SOCKET_TIMEOUT_MS], 2 * wait_ms)
        asking = leader.begin(request, version=_VERSION, timeout_ms=timeout_ms)
        self._pending.append(_Pending(self._session.generation, before, asking))

    # --- taking answers

    async def _take(self, answer: FetchResponse) -> None:
        if answer.error_code != ErrorCode.NONE:
            code = ErrorCode(answer.error_code)
            if code in (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH):
                self._session.give_up()
                self._without_session = False
                return
            raise PeerUnreachable(f"the leader refused a fetch: {code.name}")
        self._failures = 0
        out_of_range: list[tuple[Key, Position]] = []
        to_sync: list[Partition] = []
        for topic in answer.responses:
            for data in topic.partitions:
                key = (topic.topic_id, data.partition_index)
                followed = self._followed.get(key)
                told = self._told_before(key)
                if followed is None or told is None:
                    continue
                if self._carry_out(key, followed, told.position, data):
                    out_of_range.append((key, told.position))
                elif self._logs.waits_for_sync(followed.partition):
                    to_sync.append(followed.partition)
        self._without_session = answer.session_id == 0
        self._session.answered(answer.session_id)
        if to_sync:
            await asyncio.gather(*map(self._node.durability.sync, to_sync))
        for key, position in out_of_range:
            await self._find_place(key, position)

    def _told_before(self, key: Key) -> Asked | None:
        """What the leader answers to: the request behind this one may have told it something else already."""
        if self._pending and key in self._pending[0].before:
            return self._pending[0].before[key]
        return self._session.asked.get(key)

    def _carry_out(self, key: Key, followed: _Followed, position: Position, data: PartitionData) -> bool:
        """Whether the leader has to be asked where its log begins and ends."""
        effects = followed.follower.after_fetch(position, data, followed.partition.log)
        if effects:
            self._changed[key] = None
            followed.failures = 0 if data.error_code == ErrorCode.NONE else followed.failures
        for effect in effects:
            if isinstance(effect, AskForOffsets):
                return True
            if isinstance(effect, AwaitMetadata):
                self._leave_out(key, followed, None)
            elif isinstance(effect, TryAgainLater):
                self._leave_out(key, followed, effect.error.name)
            else:
                problem = self._logs.carry_out(followed.partition, effect)
                if problem is not None:
                    self._leave_out(key, followed, problem)
                    break
        if data.records and effects:
            self._slow_down(key, followed, len(data.records))
        return False

    def _slow_down(self, key: Key, followed: _Followed, count_bytes: int) -> None:
        """Ask for no more of this partition for a while, if its replication is throttled."""
        pause_ms = self._node.isr_changes.throttles.pause_after_taking(followed.partition, count_bytes)
        if pause_ms and followed.retry is None:
            followed.retry = self._loop.call_later(pause_ms / 1000, self._take_up, key, followed)

    def _leave_out(self, key: Key, followed: _Followed, why: str | None) -> None:
        """Don't ask for this partition: for a while, or without a reason until the metadata says something new."""
        self._changed[key] = None
        if why is None or followed.partition.log.is_offline:
            self._followed.pop(key, None)
            return
        if followed.retry is not None:
            return
        partition = followed.partition
        if followed.failures == 0:
            _log.info("a leader did not serve us", topic=partition.topic, partition=partition.index, error=why)
        pause_ms = self._backoff_ms(followed.failures)
        followed.failures += 1
        followed.retry = self._loop.call_later(pause_ms / 1000, self._take_up, key, followed)

    def _take_up(self, key: Key, followed: _Followed) -> None:
        followed.retry = None
        if self._followed.get(key) is followed:
            self._tell(key)

    async def _find_place(self, key: Key, position: Position) -> None:
        """The leader's log does not reach to where ours ends, or begins behind it."""
        followed = self._followed.get(key)
        if followed is None:
            return
        partition = followed.partition
        try:
            start, end = await self._logs.ask_for_offsets(self._leader(), partition, position)
        except BrokerError as refusal:
            self._leave_out(key, followed, str(refusal))
            return
        self._changed[key] = None
        effects = followed.follower.after_offsets(position, start, end, partition.log)
        for effect in effects:
            self._logs.carry_out(partition, effect)
        if not effects and self._followed.get(key) is followed:
            # The two agree by now, or will: without a pause this could go on in a circle.
            self._leave_out(key, followed, "the log has moved")
