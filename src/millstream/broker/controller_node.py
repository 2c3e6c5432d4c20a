"""This node's part of the controller: decisions become records, committed records become the image.

    response = await node.submit(lambda image, now_ms: decide_create_topics(image, request, now_ms, ...))

Every node runs one: the voters of the quorum, of which one leads (the active controller), and brokers, which only
follow. `image` is the committed one on each of them; listeners hear of every new image in order.

Only the active controller decides; the others refuse with NotController. A decision is made on the newest image, which
may be ahead of what is committed; its records are appended in the same call, so decisions never interleave. The answer,
also a refusal, waits until everything that the decision could have read is committed, and listeners hear first: who is
told that a topic exists finds it led. When the leadership is lost, whoever waits hears NotController: what they asked
for may be carried out all the same.

What was appended and is not committed yet waits as a row of images to publish (`_publications`): built while deciding,
or while reading the log at a start. What a follower has fetched is read from its log when it is committed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from millstream.broker.metadata_log import MetadataLog, MetadataLogConfig
from millstream.broker.metadata_log_terms import frame
from millstream.broker.metadata_replay import ReplayedMetadata, replay_log
from millstream.broker.metadata_snapshotting import Snapshotting
from millstream.broker.peers import Peers
from millstream.broker.quorum_config import QuorumConfig
from millstream.broker.quorum_driver import QuorumDriver
from millstream.broker.quorum_standing import QuorumStanding
from millstream.broker.quorum_voters import VoterChanges
from millstream.broker.storage_format import StorageRefused, check_openable, check_voters
from millstream.metadata import broker_lifecycle as lifecycle
from millstream.metadata.bootstrap import bootstrap_records, first_level
from millstream.metadata.delta import BrokenMetadata, Changes, apply
from millstream.metadata.difference import difference
from millstream.metadata.features import registered_features
from millstream.metadata.image import METADATA_VERSION, Controller, Endpoint, MetadataImage
from millstream.metadata.record_types import AbortTransactionRecord
from millstream.protocol.errors import BrokerError, CorruptMessage, MalformedMessage, NotController, StorageError
from millstream.quorum.election_state import NOBODY, BrokenElectionState
from millstream.quorum.events import Stopping
from millstream.quorum.voters import VoterEndpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from millstream.broker.metadata_snapshot import SnapshotId
    from millstream.metadata.decision import Decision
    from millstream.metadata.record_types import MetadataRecord
    from millstream.protocol.uuid import Uuid
    from millstream.runtime.ports import Ports

    Listener = Callable[[MetadataImage, Changes], None]

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerNodeConfig:
    """Who this node is, and where its metadata lives."""

    node_id: int
    metadata_log_dir: str
    directory_id: Uuid
    """Of the directory that holds the metadata log."""
    controller_endpoints: tuple[Endpoint, ...]
    cluster_id: str = ""
    quorum: QuorumConfig = field(default_factory=QuorumConfig)
    bootstrap: tuple[MetadataRecord, ...]
    """The records of bootstrap.checkpoint: the first ones of a new cluster."""
    min_insync_replicas: int = 1
    """What all brokers of a new cluster shall have as min.insync.replicas, where the log has to say that."""
    unclean_elections: bool = False
    """Whether leaders may be elected at the price of losing records, where the log does not say."""
    insecure: bool = False
    """Open a directory that holds access rules or credentials, which are not enforced yet."""
    log: MetadataLogConfig = field(default_factory=MetadataLogConfig)


class ActiveController(NamedTuple):
    """Who leads the quorum, in which epoch, and where its controller listener is."""

    id: int
    epoch: int
    host: str
    port: int


class _Publication(NamedTuple):
    """An image that is published once the high watermark has passed `offset`."""

    offset: int
    image: MetadataImage
    changes: Changes
    size: int


class ControllerNode:
    """See the module's docstring. Made by `ControllerNode.start`."""

    def __init__(
        self, ports: Ports, config: ControllerNodeConfig, on_failure: Callable[[BaseException], None], peers: Peers
    ) -> None:
        self._ports = ports
        self.config = config
        self.node_id = config.node_id
        self._on_failure = on_failure
        self._failure: BaseException | None = None
        self._listeners: list[Listener] = []
        self._leadership_listeners: list[Callable[[bool], None]] = []
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.is_active = False
        endpoints = tuple(
            VoterEndpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in config.controller_endpoints
        )
        self.log = MetadataLog.open(
            ports,
            config.metadata_log_dir,
            node_id=config.node_id,
            directory_id=config.directory_id,
            controller_endpoints=endpoints,
            config=config.log,
            quorum=config.quorum,
            follower=self,
        )
        self.standing = QuorumStanding(self.log.quorum, lambda: (self.image.epoch, self.image.offset + 1))
        self._driver = QuorumDriver(
            ports,
            peers,
            self.log,
            config.quorum,
            cluster_id=config.cluster_id,
            endpoints=endpoints,
            on_fetched=self.standing.freshness.fetched,
        )
        self.log.outside = self._driver
        self.voter_changes = VoterChanges(ports, peers, self.log, listener=config.quorum.listener, endpoints=endpoints)
        replayed = self.log.replayed
        # Committed is what a snapshot says; the rest of the log may be, which others will tell.
        self.image = replayed.snapshot_image
        self._publications: deque[_Publication] = deque()
        if replayed.image is not replayed.snapshot_image:
            # Snapshotting has counted its bytes.
            self._publications.append(_Publication(replayed.image.offset, replayed.image, replayed.changes, 0))
        self._snapshots = Snapshotting(ports, self.log, config.log, lambda: self.image)
        self.incarnation_id = ports.random.uuid()

    @classmethod
    async def start(
        cls,
        ports: Ports,
        config: ControllerNodeConfig,
        on_failure: Callable[[BaseException], None],
        *,
        peers: Peers | None = None,
    ) -> ControllerNode:
        """Open the metadata log and enter the quorum.

        A node that is its own quorum leads on return, and has committed its first records; any other has only begun to
        take part, and knows nothing yet but what its own snapshot says.
        """
        try:
            node = cls(ports, config, on_failure, peers or Peers(ports.network, f"millstream-{config.node_id}"))
        except (CorruptMessage, MalformedMessage, BrokenMetadata, BrokenElectionState) as error:
            raise StorageRefused(f"The metadata log in {config.metadata_log_dir} cannot be read: {error}") from error
        try:
            check_openable(node._latest, config.bootstrap, insecure=config.insecure)
            quorum = node.log.quorum
            check_voters(quorum.voters, quorum.kraft_version, config.node_id, config.directory_id)
        except StorageRefused:
            await node.log.close()
            raise
        node.log.start()
        if node.is_active:
            await node._commit_of(node._latest.offset)
        node._driver.start()
        return node

    def subscribe(self, listener: Listener) -> None:
        """Hear of every image that is committed from now on, in order and with what changed."""
        self._listeners.append(listener)

    def on_leadership(self, listener: Callable[[bool], None]) -> None:
        """Hear when this node becomes the active controller (its first decisions are appended), and when it ceases."""
        self._leadership_listeners.append(listener)

    def leader(self) -> ActiveController | None:
        """The active controller, if one is known and can be reached."""
        quorum = self.log.quorum
        address = self.address_of(quorum.leader_id) if quorum.leader_id != NOBODY else None
        return None if address is None else ActiveController(quorum.leader_id, quorum.epoch, *address)

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """Where a controller is dialled."""
        if node_id == self.node_id:
            for endpoint in self.config.controller_endpoints:
                return endpoint.host, endpoint.port
        return self._driver.address_of(node_id)

    @property
    def last_leader_id(self) -> int:
        """Who was the active controller last; to the listeners of a new one, the one before it."""
        return self._driver.last_leader_id

    def other_controllers(self) -> list[tuple[str, int]]:
        """Where those are that lead the quorum, or may do so next."""
        return self._driver.targets()

    def learn_address(self, node_id: int, host: str, port: int) -> None:
        self._driver.learn({node_id: (host, port)})

    def subscribe_log(self, listener: Callable[[], None]) -> None:
        """Hear when records were appended or committed, and when this node no longer leads."""
        self._driver.subscribe(listener)

    def unsubscribe_log(self, listener: Callable[[], None]) -> None:
        self._driver.unsubscribe(listener)

    async def submit(self, decide: Callable[[MetadataImage, int], Decision[Response]]) -> Response:
        """Decide, append, and answer once everything that the decision read or wrote is committed."""
        if self._failure is not None:
            raise self._offline()
        if not self.is_active:
            raise self._not_active()
        now_ms = self._ports.clock.wall_ms()
        try:
            decision = decide(self._to_decide_on(), now_ms)
            self._append(decision.records, now_ms)
        except BrokerError:
            await self._commit_of(self._latest.offset)
            raise
        await self._commit_of(self._latest.offset)
        return decision.response

    def _to_decide_on(self) -> MetadataImage:
        latest, offset = self._latest, self.log.end_offset - 1
        unclean = self.config.unclean_elections
        if latest.offset == offset and not unclean:
            return latest
        # The quorum's own records take offsets, too; and a broker's epoch is the offset at which it is registered.
        return msgspec.structs.replace(latest, offset=offset, unclean_elections=unclean)

    async def committed_to(self, offset: int) -> None:
        """Wait until the record at `offset`, which this node has appended, is committed."""
        await self._commit_of(offset)

    def _not_active(self) -> NotController:
        leader_id = self.log.quorum.leader_id
        return NotController(
            "There is no active controller at the moment."
            if leader_id == NOBODY
            else f"The active controller is node {leader_id}."
        )

    async def snapshot(self) -> SnapshotId:
        """Take a snapshot of the metadata now, without waiting for a trigger."""
        return await self._snapshots.take()

    async def close(self) -> None:
        """Hand over, wait for what is under way and close the files. Nobody may submit from here on."""
        if self._failure is None:
            self.log.step(Stopping())
        await self._driver.close()
        await self._snapshots.close()
        await self.log.close()

    # Appending and committing

    @property
    def _latest(self) -> MetadataImage:
        """With everything that was appended, committed or not."""
        return self._publications[-1].image if self._publications else self.image

    def _append(self, records: Sequence[MetadataRecord], now_ms: int) -> None:
        if not records:
            return
        before = self._latest
        level = before.metadata_version or first_level(records)
        framed = frame(records, level)
        # Replay comes first: a record that does not fit must not reach the log.
        latest, changes = apply(
            before,
            framed.records,
            offset=self.log.end_offset + len(framed.records) - 1,
            epoch=self.log.epoch,
            timestamp_ms=now_ms,
        )
        size = self.log.append(framed, now_ms)
        self._publications.append(_Publication(latest.offset, latest, changes, size))

    async def _commit_of(self, offset: int) -> None:
        if offset < self.log.high_watermark:
            return
        if self._failure is not None:
            raise self._offline()
        if not self.is_active:
            raise self._not_active()
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, committed))
        await committed

    def _offline(self) -> StorageError:
        return StorageError(f"the metadata log failed: {self._failure}")

    def _read_on(self, upto_offset: int) -> None:
        """Replay what the log holds behind the newest image, up to an offset, into one more publication."""
        latest = self._latest
        if latest.offset + 1 < upto_offset:
            read = replay_log(ReplayedMetadata(latest), self.log.log, upto_offset)
            self._publications.append(
                _Publication(read.image.offset, read.image, read.changes, read.bytes_since_snapshot)
            )

    # What becomes of the log (metadata_log.Follower)

    def committed(self, high_watermark: int) -> None:
        if not self.is_active and (not self._publications or self._publications[-1].offset < high_watermark):
            self._publish(high_watermark)
            self._read_on(high_watermark)
        self._publish(high_watermark)
        while self._waiting and self._waiting[0][0] < high_watermark:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def _publish(self, high_watermark: int) -> None:
        while self._publications and self._publications[0].offset < high_watermark:
            publication = self._publications.popleft()
            self.image = publication.image
            for listener in self._listeners:
                listener(publication.image, publication.changes)
            self._snapshots.committed(publication.size)

    def leads(self) -> None:
        """The records that begin our epoch are in the log: everything is replayed, and decisions can be made."""
        self._read_on(self.log.end_offset)
        now_ms = self._ports.clock.wall_ms()
        self.is_active = True
        if self._latest.pending is not None:
            # The controller before us died in the middle of a metadata transaction.
            self._append((AbortTransactionRecord(reason="the controller has changed"),), now_ms)
        if METADATA_VERSION not in self._latest.features:
            self._append(bootstrap_records(self.config.bootstrap, self.config.min_insync_replicas), now_ms)
        registration = lifecycle.decide_register_controller(self._latest, self._controller(self._latest))
        self._append(registration.records, now_ms)
        for listener in self._leadership_listeners:
            listener(self.is_active)

    def stepped_down(self) -> None:
        self.is_active = False
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(NotController("This node is no longer the active controller."))
        for listener in self._leadership_listeners:
            listener(self.is_active)

    def truncated(self, end_offset: int) -> None:
        while self._publications and self._publications[-1].offset >= end_offset:
            self._publications.pop()

    def began_anew(self, replayed: ReplayedMetadata) -> None:
        """A snapshot took the log's place: from the image that was to the one that it says."""
        changes = difference(self.image, replayed.image)
        self._publications.clear()
        self._publications.append(_Publication(replayed.image.offset, replayed.image, changes, 0))

    def failed(self, error: BaseException) -> None:
        self._failure = error
        self.is_active = False
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(self._offline())
        self._on_failure(error)

    # Who we are

    def _controller(self, image: MetadataImage) -> Controller:
        return Controller(
            id=self.node_id,
            incarnation_id=self.incarnation_id,
            endpoints=self.config.controller_endpoints,
            features=registered_features(image.features),
        )
