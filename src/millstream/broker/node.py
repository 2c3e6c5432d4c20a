"""One node: the composition root, where settings and ports become a running broker and controller.

`start` brings the parts up in the order in which they need each other: directories (locked, formatted if empty), the
metadata quorum and its image, the partitions that the image says live here, the listeners, the registration that makes
the rest of the cluster see this broker, and the jobs that run by the clock. `stop` takes them down the other way.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.broker.controller_node import ControllerNode, ControllerNodeConfig
from millstream.broker.deletions import Deletions
from millstream.broker.dispatch import load_handlers
from millstream.broker.durability import Durability
from millstream.broker.fetch_sessions import FetchSessions
from millstream.broker.group_coordinator import GroupCoordinator
from millstream.broker.listeners import ConnectionLimits, Listener
from millstream.broker.maintenance import Maintenance
from millstream.broker.metadata_log import MetadataLogConfig
from millstream.broker.metrics import Metrics
from millstream.broker.partitions import Partitions
from millstream.broker.producer_ids import ProducerIds
from millstream.broker.storage_format import Storage, StorageLayout, open_storage
from millstream.broker.transaction_coordinator import TransactionCoordinator
from millstream.broker.wakeups import Wakeups
from millstream.log.compaction import Compactor
from millstream.log.directory import LogDirectory
from millstream.metadata.features import registered_features
from millstream.metadata.image import BROKER_CONFIG, CLUSTER_DEFAULT, Endpoint
from millstream.protocol.errors import BrokerError
from millstream.protocol.frame_reader import SCRATCH_BYTES
from millstream.quorum.voters import VoterEndpoint
from millstream.runtime.logs import Logger
from millstream.security.operations import AllowAll, Authorizer
from millstream.security.quotas import NoQuotas, Quotas
from millstream.settings import (
    BROKER_RACK,
    LOG_CLEANER_DEDUPE_BUFFER_SIZE,
    LOG_DIR,
    LOG_DIRS,
    MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS,
    METADATA_LOG_DIR,
    METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS,
    METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS,
    METADATA_LOG_SEGMENT_BYTES,
    METADATA_LOG_SEGMENT_MS,
    METADATA_MAX_RETENTION_BYTES,
    METADATA_MAX_RETENTION_MS,
    MILLSTREAM_INSECURE,
    NODE_ID,
    topic_settings,
)
from millstream.settings.listeners import SECURITY_PROTOCOLS, Endpoints, quorum_voters

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from millstream.metadata.image import MetadataImage, SupportedFeature
    from millstream.runtime.ports import Ports
    from millstream.settings import Settings

_log = Logger("millstream.node")


class Node:
    """A broker and controller in one. Made, started and stopped on one event loop."""

    controller: ControllerNode
    storage: Storage
    partitions: Partitions
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    connection_limits: ConnectionLimits

    def __init__(self, settings: Settings, ports: Ports) -> None:
        self.loop = asyncio.get_running_loop()
        self.started_with = settings
        self.settings = settings
        self.ports = ports
        self.node_id = settings[NODE_ID]
        self.endpoints = Endpoints.of(settings)
        self.metrics = Metrics()
        self.authorizer: Authorizer = AllowAll()
        self.quotas: Quotas = NoQuotas()
        self.scratch = bytearray(SCRATCH_BYTES)
        self.is_ready = False
        self.failed: asyncio.Future[BaseException] = self.loop.create_future()
        self.connection_limits = ConnectionLimits.of(settings)
        self.listeners: list[Listener] = []
        self.log_directories: list[LogDirectory] = []
        self._held_directories: list[LogDirectory] = []
        self._background: dict[asyncio.Task[None], None] = {}
        self.wakeups = Wakeups()
        self.partitions = Partitions(self)
        self.groups = GroupCoordinator(self)
        self.partitions.role_listeners[self.groups.topic] = self.groups
        self.producer_ids = ProducerIds(self._allocate_producer_ids)
        self.transactions = TransactionCoordinator(self)
        self.partitions.role_listeners[self.transactions.topic] = self.transactions
        self.fetch_sessions = FetchSessions(ports.random, settings[MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS])
        self.deletions = Deletions(ports.disk, ports.workers, ports.random)
        self.durability = Durability(ports.workers)
        self.compactor = Compactor(
            self.log_directories,
            ports.workers,
            ports.clock,
            dedupe_buffer_bytes=settings[LOG_CLEANER_DEDUPE_BUFFER_SIZE],
        )
        self.maintenance = Maintenance(self)
        self._plain_topic_settings = topic_settings(settings, {})

    # --- what handlers ask

    @property
    def image(self) -> MetadataImage:
        """The newest committed metadata."""
        return self.controller.image

    @property
    def cluster_id(self) -> str:
        return self.storage.cluster_id

    @property
    def supported_features(self) -> Mapping[str, SupportedFeature]:
        return registered_features(self.image.features)

    def finalized_features(self) -> dict[str, int]:
        """The levels that are in force; kraft.version is the quorum's own and no metadata record."""
        return {**self.image.features, "kraft.version": self.controller.log.quorum.kraft_version}

    @property
    def data_directories(self) -> tuple[str, ...]:
        return self.storage.layout.log_dirs

    @property
    def port(self) -> int:
        """The port of the first listener for clients."""
        return next(listener.port for listener in self.listeners if not listener.is_controller)

    def topic_settings(self, image: MetadataImage, topic: str) -> Settings:
        """The effective settings of a topic; topics without settings of their own share one object."""
        overrides = image.topic_config(topic)
        return topic_settings(self.settings, overrides) if overrides else self._plain_topic_settings

    def follow_broker_settings(self, image: MetadataImage) -> None:
        """Dynamic settings of brokers changed."""
        self.settings = self.started_with.with_dynamic(
            cluster=image.config(BROKER_CONFIG, CLUSTER_DEFAULT), broker=image.config(BROKER_CONFIG, str(self.node_id))
        )
        self._plain_topic_settings = topic_settings(self.settings, {})
        self.connection_limits.follow(self.settings)
        self.compactor.dedupe_buffer_bytes = self.settings[LOG_CLEANER_DEDUPE_BUFFER_SIZE]

    async def _allocate_producer_ids(self) -> range:
        return await self.controller.allocate_producer_ids()

    def background(self, work: Coroutine[Any, Any, object]) -> None:
        """Run something that nobody waits for; a refusal is logged, and a stop waits for it."""

        async def run() -> None:
            try:
                await work
            except BrokerError as error:
                _log.warning("work in the background was refused", error=str(error))

        task = self.loop.create_task(run())
        self._background[task] = None
        task.add_done_callback(lambda done: self._background.pop(done, None))

    # --- coming up

    async def start(self) -> None:
        """Come up; when this returns, clients are served."""
        try:
            await self._start()
        except BaseException:
            await self._take_down(clean=False)
            raise

    async def _start(self) -> None:
        layout = StorageLayout.of(_log_dirs(self.settings), self.settings[METADATA_LOG_DIR])
        held = {
            path: LogDirectory.open(self.ports.disk, path, self.ports.clock, self.ports.random)
            for path in layout.all_dirs
        }
        self._held_directories = list(held.values())
        handlers = load_handlers()
        self.listeners = [
            Listener(
                self, endpoint.listener, endpoint.host, endpoint.port, is_controller=is_controller, handlers=handlers
            )
            for endpoints, is_controller in ((self.endpoints.broker, False), (self.endpoints.controller, True))
            for endpoint in endpoints
        ]
        # Sockets first: port 0 becomes a number here, and registrations carry numbers. Nobody is served before the end.
        for listener in self.listeners:
            await listener.open()
        self.storage = open_storage(
            self.ports, layout, node_id=self.node_id, controller_endpoint=self._voter_endpoint()
        )
        for path, directory in held.items():
            directory.id = self.storage.directory_ids[path]
        self.log_directories += [held[path] for path in layout.log_dirs]
        self.controller = await ControllerNode.start(self.ports, self._controller_config(), self._fail)
        image = self.controller.image
        self.follow_broker_settings(image)
        self.partitions.load(image)
        self._tidy_up()
        self.controller.subscribe(self.partitions.apply)
        self.controller.subscribe(self.groups.metadata_changed)
        epochs = {directory.clean_broker_epoch for directory in self.log_directories}
        await self.controller.register_broker(
            endpoints=self._registered_endpoints(controller=False),
            log_dirs=self.storage.log_dir_ids,
            rack=self.settings[BROKER_RACK],
            clean_shutdown_epoch=epochs.pop() if len(epochs) == 1 else -1,
        )
        await self.controller.unfence()
        self.maintenance.start()
        self.is_ready = True
        for listener in self.listeners:
            listener.start_serving()

    def _tidy_up(self) -> None:
        """Folders that the metadata does not know are set aside; those of deleted topics are removed for good."""
        for directory in self.log_directories:
            for stray in directory.set_strays_aside():
                _log.warning("a partition that no topic knows was set aside", directory=directory.path, name=stray)
            for path in directory.to_remove:
                self.deletions.later(0, self.ports.disk.remove_tree, path)

    def _controller_config(self) -> ControllerNodeConfig:
        settings = self.settings
        return ControllerNodeConfig(
            node_id=self.node_id,
            metadata_log_dir=self.storage.layout.metadata_log_dir,
            directory_id=self.storage.metadata_directory_id,
            controller_endpoints=self._registered_endpoints(controller=True),
            bootstrap=self.storage.bootstrap,
            insecure=settings[MILLSTREAM_INSECURE],
            log=MetadataLogConfig(
                segment_bytes=settings[METADATA_LOG_SEGMENT_BYTES],
                segment_ms=settings[METADATA_LOG_SEGMENT_MS],
                record_bytes_between_snapshots_max=settings[METADATA_LOG_MAX_RECORD_BYTES_BETWEEN_SNAPSHOTS],
                snapshot_interval_max_ms=settings[METADATA_LOG_MAX_SNAPSHOT_INTERVAL_MS],
                retention_bytes_max=settings[METADATA_MAX_RETENTION_BYTES],
                retention_ms_max=settings[METADATA_MAX_RETENTION_MS],
            ),
        )

    def _registered_endpoints(self, *, controller: bool) -> tuple[Endpoint, ...]:
        """What is written into the metadata: the advertised address, or the one that is listened on."""
        advertised = {endpoint.listener: endpoint for endpoint in self.endpoints.advertised}
        found = []
        for listener in self.listeners:
            if listener.is_controller == controller:
                told = advertised.get(listener.name)
                protocol = self.endpoints.security_protocols[listener.name]
                found.append(
                    Endpoint(
                        name=listener.name,
                        host=told.host if told else listener.host or "localhost",
                        port=told.port if told else listener.port,
                        security_protocol=SECURITY_PROTOCOLS[protocol],
                    )
                )
        return tuple(found)

    def _voter_endpoint(self) -> VoterEndpoint | None:
        """Where other controllers would reach this one; None where the voters are fixed by a setting."""
        if quorum_voters(self.settings):
            return None
        for endpoint in self._registered_endpoints(controller=True):
            return VoterEndpoint(endpoint.name, endpoint.host, endpoint.port)
        return VoterEndpoint(self.endpoints.controller_names[0], "localhost", 9093)

    def _fail(self, error: BaseException) -> None:
        """The metadata log is broken: this node cannot go on."""
        _log.error("the metadata log failed; the node stops", error=str(error))
        if not self.failed.done():
            self.failed.set_result(error)

    # --- going down

    async def stop(self) -> None:
        """Stop in order: nothing acknowledged is lost, and the next start needs no recovery."""
        await self._take_down(clean=True)

    async def _take_down(self, *, clean: bool) -> None:
        self.is_ready = False
        for listener in self.listeners:
            listener.stop_listening()
        await self.maintenance.stop()
        await asyncio.gather(*self._background, return_exceptions=True)
        if hasattr(self, "controller"):
            if clean and not self.failed.done():
                await _though_the_disk_fails(self.controller.leave())
            await _though_the_disk_fails(self.controller.close())
        for listener in self.listeners:
            listener.close()
        self.groups.close()
        self.transactions.close()
        await self.durability.stop()
        await self.deletions.stop()
        for directory in self._held_directories:
            if clean:
                await self._close_in_order(directory)
            else:
                directory.let_go()
        self.ports.workers.close()

    async def _close_in_order(self, directory: LogDirectory) -> None:
        """A thousand partitions have thousands of files to sync: in threads, so that they share the disk's flushes."""
        in_thread = self.ports.workers.in_thread
        targets = directory.prepare_close()
        files = [target for target in targets if not target.is_directory]
        folders = [target for target in targets if target.is_directory]
        # A name is worth nothing before its content: folders come after the files in them.
        outcomes = await asyncio.gather(*(in_thread(target.sync) for target in files), return_exceptions=True)
        outcomes += await asyncio.gather(*(in_thread(target.sync) for target in folders), return_exceptions=True)
        failed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for error in failed[:1]:
            _log.error("not everything could be synced; the next start recovers", error=str(error))
        # Not synced by us: `close` tries by itself, log by log, and marks those that fail.
        try:
            directory.close(self.controller.broker_epoch, targets_synced=not failed)
        except OSError as error:
            _log.error("not closed in order; the next start recovers", directory=directory.path, error=str(error))


async def _though_the_disk_fails(work: Coroutine[Any, Any, None]) -> None:
    """A step of a stop. What it could not write costs the next start some time, and nobody any data."""
    try:
        await work
    except BrokerError as error:
        _log.error("the metadata could not be closed in order; the next start recovers", error=str(error))


def _log_dirs(settings: Settings) -> tuple[str, ...]:
    return settings[LOG_DIRS] or settings[LOG_DIR]
