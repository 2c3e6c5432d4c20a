"""Following the quorum's leader: one task, for as long as the node lives.

It fetches from whomever the quorum says, waits until what came is on disk (a fetch tells the leader that everything
before is), takes a snapshot where the log no longer reaches back far enough, and asks around where nobody is known to
lead. When the quorum changes its mind (`turn`), the question under way is given up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.broker.metadata_snapshot import SnapshotId
from millstream.broker.peers import PeerUnreachable
from millstream.broker.quorum_messages import FETCH_WAIT_MS_MAX, fetch_request, seen_in_fetch
from millstream.broker.quorum_snapshots import SnapshotDownload, SnapshotUnavailable
from millstream.protocol.errors import BrokerError, ErrorCode
from millstream.quorum.election_state import NOBODY
from millstream.quorum.events import FetchAnswered, LeaderLost
from millstream.quorum.positions import LogPosition
from millstream.quorum.roles import Follower, Leader
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.metadata_log import MetadataLog
    from millstream.broker.peers import Peers
    from millstream.broker.quorum_config import QuorumConfig
    from millstream.broker.quorum_driver import Address, QuorumDriver
    from millstream.protocol.messages.fetch import PartitionData
    from millstream.runtime.ports import Ports

_FETCHING = "quorum-fetch"
BACKOFF_MS_MAX = 500
# A connection that breaks and cannot be made again so many times in a row: the leader's process is gone.
_LOST_AFTER_FAILURES = 2
_events = Logger("millstream.quorum")


class Following:
    """See the module's docstring."""

    def __init__(
        self,
        ports: Ports,
        peers: Peers,
        log: MetadataLog,
        config: QuorumConfig,
        driver: QuorumDriver,
        on_fetched: Callable[[int, int, int], None],
    ) -> None:
        self._ports = ports
        self._peers = peers
        self._log = log
        self._quorum = log.quorum
        self._config = config
        self._driver = driver
        self._on_fetched = on_fetched
        self._asking: asyncio.Future[Any] | None = None
        self._changed = asyncio.Event()
        self._snapshot: SnapshotId | None = None
        self._next_target = 0
        self._noted_loss = -1
        self._noted_refusal = int(ErrorCode.NONE)

    def turn(self) -> None:
        """The quorum follows somebody else now, or nobody: what is being asked no longer matters."""
        self._changed.set()
        if self._asking is not None:
            self._asking.cancel()

    def take_snapshot(self, snapshot: LogPosition) -> None:
        """Instead of the next fetch."""
        self._snapshot = SnapshotId(*snapshot)

    async def run(self) -> None:
        failures = 0
        while not self._driver.is_closed and not self._log.has_failed:
            self._changed.clear()
            role = self._quorum.role
            if isinstance(role, Leader):
                await self._changed.wait()
                continue
            try:
                went_well = await self._follow_once(role.leader_id if isinstance(role, Follower) else NOBODY)
            except Exception as error:  # noqa: BLE001  # the task must go on: without it the node is deaf
                _events.error("following the quorum's leader failed", exc_info=error)
                went_well = False
            if self._changed.is_set() or went_well:
                failures = 0
                continue
            failures += 1
            await self._pause_or_change(min(self._config.retry_backoff_ms << min(failures, 10), BACKOFF_MS_MAX))

    async def _pause_or_change(self, pause_ms: int) -> None:
        try:
            async with asyncio.timeout((pause_ms // 2 + self._ports.random.below(pause_ms // 2 + 1)) / 1000):
                await self._changed.wait()
        except TimeoutError:
            pass

    async def _follow_once(self, leader_id: int) -> bool:
        """One fetch from the leader, or from anybody who may know it; False if a pause should come before the next."""
        epoch = self._quorum.epoch
        address = self._driver.address_of(leader_id) if leader_id != NOBODY else None
        if address is None:
            leader_id = NOBODY
            targets = self._driver.targets()
            if not targets:
                return False
            self._next_target += 1
            address = targets[self._next_target % len(targets)]
        if self._snapshot is not None and leader_id != NOBODY:
            return await self._download(address, leader_id, epoch)
        # What a fetch says to be there has to be on disk.
        await self._log.flushed()
        if self._changed.is_set():
            return True
        request = fetch_request(
            own_id=self._driver.own.id,
            own_directory_id=self._driver.own.directory_id,
            cluster_id=self._driver.cluster_id,
            epoch=epoch,
            end=self._log.files.end,
            high_watermark=self._quorum.high_watermark,
            bytes_max=self._config.fetch_bytes_max,
            # Who only wants to know the leader does not wait for records.
            wait_ms=0 if leader_id == NOBODY else FETCH_WAIT_MS_MAX,
        )
        sent_ms = self._ports.clock.monotonic_ms()
        response = await self._ask_to_follow(address, request, leader_id, epoch)
        return response is not None and self._take_fetch(response, leader_id, epoch, sent_ms)

    async def _ask_to_follow(self, address: Address, request: object, leader_id: int, epoch: int) -> Any | None:
        for attempt in range(1, _LOST_AFTER_FAILURES + 1):
            peer = self._peers.at(*address, _FETCHING)
            began_ms = self._ports.clock.monotonic_ms()
            asking = asyncio.ensure_future(peer.ask(request, timeout_ms=self._config.request_timeout_ms))
            self._asking = asking
            try:
                await asyncio.wait((asking,))
            finally:
                self._asking = None
                asking.cancel()
            if asking.cancelled():
                return None
            error = asking.exception()
            if error is None:
                return asking.result()
            if not isinstance(error, PeerUnreachable):
                raise error
            if leader_id == NOBODY:
                return None
            took_ms = self._ports.clock.monotonic_ms() - began_ms
            if attempt == _LOST_AFTER_FAILURES and took_ms < self._config.request_timeout_ms // 4:
                if self._noted_loss != epoch:
                    self._noted_loss = epoch
                    _events.warning("the quorum's leader is gone", leader=leader_id, epoch=epoch, why=str(error))
                self._driver.step(LeaderLost(leader_id, epoch))
        return None

    def _take_fetch(self, response: Any, leader_id: int, epoch: int, sent_ms: int) -> bool:
        seen, partition = seen_in_fetch(response)
        self._driver.note(seen)
        if partition is None or seen.error_code != ErrorCode.NONE:
            if partition is None:
                self._refused_altogether(seen.error_code)
            if seen.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and leader_id != NOBODY:
                # It has resigned. Voters were told that; a broker has to look around.
                self._driver.step(LeaderLost(leader_id, epoch))
            return False
        if leader_id == NOBODY:
            # It came from the leader, as the answer said: now that it is known, the next fetch is meant for it.
            return self._driver.address_of(self._quorum.leader_id) is not None
        end_offset = self._log.end_offset
        self._step_fetched(partition, leader_id, epoch)
        if partition.diverging_epoch.epoch < 0 and partition.snapshot_id.epoch < 0:
            self._on_fetched(epoch, partition.high_watermark, sent_ms)
        # Records that could not be taken (they were damaged, or the disk is full) are not asked for again at once.
        return not partition.records or self._log.end_offset > end_offset

    def _refused_altogether(self, code: int) -> None:
        """Not for now, as by one that leads no longer: this node is of another cluster, or may not follow this one."""
        if code not in (ErrorCode.NONE, self._noted_refusal):
            self._noted_refusal = code
            reason = ErrorCode(code)
            _events.error("the quorum refuses this node", error=reason.name, meaning=reason.meaning)

    def _step_fetched(self, partition: PartitionData, leader_id: int, epoch: int) -> None:
        diverging, snapshot = partition.diverging_epoch, partition.snapshot_id
        self._driver.step(
            FetchAnswered(
                leader_id,
                epoch,
                high_watermark=partition.high_watermark,
                records=partition.records,
                diverging=LogPosition(diverging.end_offset, diverging.epoch) if diverging.epoch >= 0 else None,
                snapshot=LogPosition(snapshot.end_offset, snapshot.epoch) if snapshot.epoch >= 0 else None,
            )
        )

    async def _download(self, address: Address, leader_id: int, epoch: int) -> bool:
        """Take the leader's snapshot, piece by piece; a piece counts as a sign of life."""
        assert self._snapshot is not None
        download = SnapshotDownload(
            self._ports,
            self._peers.at(*address, _FETCHING),
            self._log.directory,
            self._snapshot,
            cluster_id=self._driver.cluster_id,
            own=self._driver.own,
            epoch=epoch,
            bytes_max=self._config.snapshot_bytes_max,
            timeout_ms=self._config.request_timeout_ms,
        )
        try:
            while not self._changed.is_set():
                done = await download.next_piece()
                self._driver.step(FetchAnswered(leader_id, epoch))
                if done:
                    await download.finish()
                    self._log.begin_behind(self._snapshot)
                    self._snapshot = None
                    return True
        except (PeerUnreachable, SnapshotUnavailable, BrokerError) as error:
            _events.warning("a metadata snapshot could not be fetched", leader=leader_id, error=str(error))
            self._snapshot = None
            return False
        finally:
            download.close()
        self._snapshot = None
        return False
