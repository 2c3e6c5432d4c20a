"""The controller of this node: decisions become records, committed records become the image.

    response = await node.submit(lambda image, now_ms: decide_create_topics(image, request, now_ms, ...))

A decision is made on the newest image, which may be ahead of what is committed; its records are appended in the same
call, so decisions never interleave. The answer, also a refusal, waits until everything that the decision could have
read is committed. `image` is the committed one; listeners hear of every new image in order, before the answers go out:
who is told that a topic exists finds it led.

The node also looks after its own place in the cluster, as Kafka's combined node does: the first records of a new
cluster, its registrations as controller and as broker, unfencing (which gives it its partitions in a new leader epoch),
controlled shutdown, and blocks of producer ids.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from millstream.broker.metadata_log import MetadataLog, MetadataLogConfig
from millstream.broker.metadata_snapshotting import Snapshotting
from millstream.broker.storage_format import StorageRefused, check_openable, check_voters
from millstream.metadata import broker_lifecycle as lifecycle
from millstream.metadata import metadata_version as levels
from millstream.metadata.bootstrap import bootstrap_records
from millstream.metadata.delta import NO_CHANGES, BrokenMetadata, Changes, apply
from millstream.metadata.features import registered_features
from millstream.metadata.image import METADATA_VERSION, Broker, Controller, Endpoint, MetadataImage
from millstream.metadata.record_types import AbortTransactionRecord
from millstream.protocol.errors import BrokerError, CorruptMessage, MalformedMessage, StorageError
from millstream.quorum.election_state import BrokenElectionState
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
NO_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerNodeConfig:
    """Who this node is, and where its metadata lives."""

    node_id: int
    metadata_log_dir: str
    directory_id: Uuid
    """Of the directory that holds the metadata log."""
    controller_endpoints: tuple[Endpoint, ...]
    bootstrap: tuple[MetadataRecord, ...]
    """The records of bootstrap.checkpoint: the first ones of a new cluster."""
    insecure: bool = False
    """Open a directory that holds access rules or credentials, which are not enforced yet."""
    log: MetadataLogConfig = field(default_factory=MetadataLogConfig)


class _Publication(NamedTuple):
    """An image that is published once the high watermark has passed `offset`."""

    offset: int
    image: MetadataImage
    changes: Changes
    size: int


class ControllerNode:
    """See the module's docstring. Made by `ControllerNode.start`."""

    def __init__(self, ports: Ports, config: ControllerNodeConfig, on_failure: Callable[[BaseException], None]) -> None:
        self._ports = ports
        self.config = config
        self.node_id = config.node_id
        self._on_failure = on_failure
        self._failure: BaseException | None = None
        self._listeners: list[Listener] = []
        self._publications: deque[_Publication] = deque()
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.log = MetadataLog.open(
            ports,
            config.metadata_log_dir,
            node_id=config.node_id,
            directory_id=config.directory_id,
            controller_endpoints=tuple(
                VoterEndpoint(endpoint.name, endpoint.host, endpoint.port) for endpoint in config.controller_endpoints
            ),
            config=config.log,
            on_commit=self._committed,
            on_failure=self._failed,
        )
        # `image` is committed; `_latest` has everything that was appended.
        self.image = self._latest = self.log.image
        self._snapshots = Snapshotting(ports, self.log, config.log, lambda: self.image)
        self.broker_epoch = NO_EPOCH
        self.incarnation_id = ports.random.uuid()

    @classmethod
    async def start(
        cls, ports: Ports, config: ControllerNodeConfig, on_failure: Callable[[BaseException], None]
    ) -> ControllerNode:
        """Open the metadata log, enter the quorum and register as a controller; all of it is committed on return."""
        try:
            node = cls(ports, config, on_failure)
        except (CorruptMessage, MalformedMessage, BrokenMetadata, BrokenElectionState) as error:
            raise StorageRefused(f"The metadata log in {config.metadata_log_dir} cannot be read: {error}") from error
        try:
            check_openable(node.image, config.bootstrap, insecure=config.insecure)
            quorum = node.log.quorum
            check_voters(quorum.voters, quorum.kraft_version, config.node_id, config.directory_id)
        except StorageRefused:
            await node.log.close()
            raise
        node.log.start()
        node._pass_over_control_records()
        node._begin_cluster()
        await node.submit(lambda image, _: lifecycle.decide_register_controller(image, node._controller(image)))
        return node

    def subscribe(self, listener: Listener) -> None:
        """Hear of every image that is committed from now on, in order and with what changed."""
        self._listeners.append(listener)

    async def submit(self, decide: Callable[[MetadataImage, int], Decision[Response]]) -> Response:
        """Decide, append, and answer once everything that the decision read or wrote is committed."""
        if self._failure is not None:
            raise self._offline()
        now_ms = self._ports.clock.wall_ms()
        try:
            decision = decide(self._latest, now_ms)
            self._append(decision.records, now_ms)
        except BrokerError:
            await self._commit_of(self._latest.offset)
            raise
        await self._commit_of(self._latest.offset)
        return decision.response

    # This node as a broker

    async def register_broker(
        self,
        *,
        endpoints: tuple[Endpoint, ...],
        log_dirs: tuple[Uuid, ...],
        rack: str | None = None,
        clean_shutdown_epoch: int = NO_EPOCH,
    ) -> int:
        """Register, fenced; the answer is the broker epoch. `clean_shutdown_epoch` is what the clean-shutdown markers
        of all log directories agree on."""
        self.broker_epoch = await self.submit(
            lambda image, _: lifecycle.decide_register_broker(
                image, self._broker(image, endpoints, log_dirs, rack), clean_shutdown_epoch=clean_shutdown_epoch
            )
        )
        return self.broker_epoch

    async def join(
        self,
        *,
        endpoints: tuple[Endpoint, ...],
        log_dirs: tuple[Uuid, ...],
        rack: str | None = None,
        clean_shutdown_epoch: int = NO_EPOCH,
    ) -> int:
        """Register and unfence in one commit, for a broker that has its logs loaded and its listeners bound."""
        self.broker_epoch = await self.submit(
            lambda image, _: lifecycle.decide_join(
                image, self._broker(image, endpoints, log_dirs, rack), clean_shutdown_epoch=clean_shutdown_epoch
            )
        )
        return self.broker_epoch

    async def unfence(self) -> None:
        """The broker serves: it gets the leadership of its partitions, each in a new epoch."""
        await self.submit(lambda image, _: lifecycle.decide_unfence_broker(image, self.node_id, self.broker_epoch))

    async def leave(self) -> None:
        """Controlled shutdown: the partitions lose their leader and the broker is fenced. Serve nothing afterwards."""
        if self.broker_epoch == NO_EPOCH:
            return
        await self.submit(lambda image, _: lifecycle.decide_leave(image, self.node_id, self.broker_epoch))

    async def allocate_producer_ids(self) -> range:
        """A block of a thousand producer ids that nobody else has."""
        return await self.submit(
            lambda image, _: lifecycle.decide_allocate_producer_ids(image, self.node_id, self.broker_epoch)
        )

    async def snapshot(self) -> SnapshotId:
        """Take a snapshot of the metadata now, without waiting for a trigger."""
        return await self._snapshots.take()

    async def close(self) -> None:
        """Wait for what is under way and close the files. Nobody may submit from here on."""
        await self._snapshots.close()
        await self.log.close()

    # Appending and committing

    def _append(self, records: Sequence[MetadataRecord], now_ms: int) -> None:
        if not records:
            return
        level = self._latest.metadata_version or _bootstrap_level(records)
        framed = self.log.frame(records, level)
        # Replay comes first: a record that does not fit must not reach the log.
        latest, changes = apply(
            self._latest,
            framed.records,
            offset=self.log.end_offset + len(framed.records) - 1,
            epoch=self.log.epoch,
            timestamp_ms=now_ms,
        )
        size = self.log.append(framed, now_ms)
        self._latest = latest
        self._publications.append(_Publication(latest.offset, latest, changes, size))

    async def _commit_of(self, offset: int) -> None:
        if offset < self.log.high_watermark:
            return
        if self._failure is not None:
            raise self._offline()
        committed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, committed))
        await committed

    def _committed(self, high_watermark: int) -> None:
        while self._publications and self._publications[0].offset < high_watermark:
            publication = self._publications.popleft()
            self.image = publication.image
            for listener in self._listeners:
                listener(publication.image, publication.changes)
            self._snapshots.committed(publication.size)
        while self._waiting and self._waiting[0][0] < high_watermark:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_result(None)

    def _failed(self, error: BaseException) -> None:
        self._failure = error
        waiting, self._waiting = self._waiting, deque()
        for _, future in waiting:
            if not future.done():
                future.set_exception(self._offline())
        self._on_failure(error)

    def _offline(self) -> StorageError:
        return StorageError(f"the metadata log failed: {self._failure}")

    # The first records

    def _pass_over_control_records(self) -> None:
        """The records that began our epoch change nothing in the image but its place in the log."""
        self._latest = msgspec.structs.replace(
            self._latest,
            offset=self.log.end_offset - 1,
            epoch=self.log.epoch,
            timestamp_ms=self._ports.clock.wall_ms(),
        )
        self._publications.append(_Publication(self._latest.offset, self._latest, NO_CHANGES, 0))

    def _begin_cluster(self) -> None:
        now_ms = self._ports.clock.wall_ms()
        if self._latest.pending is not None:
            # The controller before us died in the middle of a metadata transaction.
            self._append((AbortTransactionRecord(reason="the controller has changed"),), now_ms)
        if METADATA_VERSION not in self._latest.features:
            self._append(bootstrap_records(self.config.bootstrap), now_ms)

    def _broker(
        self, image: MetadataImage, endpoints: tuple[Endpoint, ...], log_dirs: tuple[Uuid, ...], rack: str | None
    ) -> Broker:
        return Broker(
            id=self.node_id,
            epoch=NO_EPOCH,
            incarnation_id=self.incarnation_id,
            endpoints=endpoints,
            rack=rack,
            features=registered_features(image.features),
            log_dirs=tuple(sorted(log_dirs)),
        )

    def _controller(self, image: MetadataImage) -> Controller:
        return Controller(
            id=self.node_id,
            incarnation_id=self.incarnation_id,
            endpoints=self.config.controller_endpoints,
            features=registered_features(image.features),
        )


def _bootstrap_level(records: Sequence[MetadataRecord]) -> int:
    # The first batch of a cluster brings its own metadata.version along.
    image, _ = apply(MetadataImage(), records)
    return image.metadata_version or levels.LEVEL_MIN
