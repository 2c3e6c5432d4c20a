"""One node: the composition root, where settings and ports become a running broker, a controller, or both.

`start` brings the parts up in the order in which they need each other: directories (locked, formatted if empty), the
metadata quorum and its image, the registration that gives this broker its epoch, the partitions that the image says
live here, and at last the word to the controller that this broker serves. `stop` takes them down the other way.

The controllers' listener serves before all that: without it a quorum of several nodes would never find a leader. The
broker's own listeners serve when all is loaded.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from millstream.broker.broker_watch import BrokerWatch
from millstream.broker.closing import close_in_order, though_the_disk_fails
from millstream.broker.controller_channel import ControllerChannel
from millstream.broker.controller_node import ControllerNode
from millstream.broker.deletions import Deletions
from millstream.broker.dispatch import load_handlers
from millstream.broker.durability import Durability
from millstream.broker.fetch_sessions import FetchSessions
from millstream.broker.group_coordinator import GroupCoordinator
from millstream.broker.ignored_configs import IgnoredConfigs
from millstream.broker.isr_changes import IsrChanges
from millstream.broker.listeners import ConnectionLimits, Listener
from millstream.broker.maintenance import Maintenance
from millstream.broker.membership import Membership
from millstream.broker.metrics import Metrics
from millstream.broker.node_setup import (
    controller_config,
    open_directories,
    open_node_storage,
    readable_layout,
    registered_endpoints,
)
from millstream.broker.partitions import Partitions
from millstream.broker.peers import Peers
from millstream.broker.producer_ids import ProducerIds
from millstream.broker.replica_fetchers import ReplicaFetchers
from millstream.broker.storage_format import Storage, StorageLayout
from millstream.broker.transaction_coordinator import TransactionCoordinator
from millstream.broker.wakeups import Wakeups
from millstream.log.compaction import Compactor
from millstream.metadata.features import registered_features
from millstream.metadata.image import BROKER_CONFIG, CLUSTER_DEFAULT
from millstream.protocol.errors import BrokerError
from millstream.protocol.frame_reader import SCRATCH_BYTES
from millstream.runtime.logs import Logger
from millstream.security.operations import AllowAll, Authorizer
from millstream.security.quotas import NoQuotas, Quotas
from millstream.settings import (
    LOG_CLEANER_DEDUPE_BUFFER_SIZE,
    LOG_DIR,
    LOG_DIRS,
    MAX_INCREMENTAL_FETCH_SESSION_CACHE_SLOTS,
    METADATA_LOG_DIR,
    NODE_ID,
    PROCESS_ROLES,
    topic_settings,
)
from millstream.settings.listeners import Endpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from millstream.log.directory import LogDirectory
    from millstream.metadata.delta import Changes
    from millstream.metadata.image import MetadataImage, SupportedFeature
    from millstream.runtime.ports import Ports
    from millstream.settings import Settings

_log = Logger("millstream.node")
# What was begun in the background is waited for at a stop, but not for ever: the controller it asks may be gone.
BACKGROUND_S = 5.0
_HOW_TO_FORMAT = (
    "All nodes of a cluster are formatted with one id: see `millstream format --help`, or use --cluster-id."
)


class Node:
    """A broker, a controller, or both (`process.roles`). Made, started and stopped on one event loop."""

    controller: ControllerNode
    storage: Storage
    partitions: Partitions
    fetch_sessions: FetchSessions
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    connection_limits: ConnectionLimits

    def __init__(self, settings: Settings, ports: Ports, *, cluster_id: str | None = None) -> None:
        self.loop = asyncio.get_running_loop()
        self.started_with = settings
        self.settings = settings
        self.ports = ports
        # For directories that are empty; those that are not must be of this cluster. None: whatever they say.
        self._wanted_cluster_id = cluster_id
        self.node_id = settings[NODE_ID]
        self.is_broker = "broker" in settings[PROCESS_ROLES]
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
        self._image_awaited: list[tuple[Callable[[MetadataImage], bool], asyncio.Future[None]]] = []
        self.peers = Peers(ports.network, f"millstream-{self.node_id}")
        self.membership = Membership(self)
        self.watch = BrokerWatch(self)
        self.ignored_configs = IgnoredConfigs(self.node_id, is_broker=self.is_broker)
        self._to_controller = ControllerChannel(self)
        self.wakeups = Wakeups()
        self.replica_fetchers = ReplicaFetchers(self)
        self.isr_changes = IsrChanges(self)
        self.partitions = Partitions(self)
        self.groups = GroupCoordinator(self)
        self.partitions.role_listeners[self.groups.topic] = self.groups
        self.producer_ids = ProducerIds(self.membership.allocate_producer_ids)
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

    @property
    def broker_epoch(self) -> int:
        """Of this broker's registration; -1 before it has one."""
        return self.membership.epoch

    def endpoint_of(self, broker_id: int) -> tuple[str, int] | None:
        """Where brokers reach that one; None if it is not registered or has no such listener."""
        broker = self.image.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(self.endpoints.inter_broker)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    async def ask_controller(
        self, request: Any, *, version: int | None = None, timeout_ms: int, purpose: str = "controller"
    ) -> Any:
        """The answer of whoever is the active controller (controller_channel.py)."""
        return await self._to_controller.ask(request, version=version, timeout_ms=timeout_ms, purpose=purpose)

    async def wait_for_image(self, holds: Callable[[MetadataImage], bool]) -> None:
        """Until the metadata that this node has replayed says so."""
        if not holds(self.image):
            came: asyncio.Future[None] = self.loop.create_future()
            self._image_awaited.append((holds, came))
            await came

    def _image_changed(self, image: MetadataImage, changes: Changes) -> None:
        if changes.configs and not self.is_broker:
            self.follow_broker_settings(image)
        if self._image_awaited:
            waiting, self._image_awaited = self._image_awaited, []
            for holds, came in waiting:
                if came.done():
                    continue
                if holds(image):
                    came.set_result(None)
                else:
                    self._image_awaited.append((holds, came))

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
        starting = self.loop.create_task(self._start())
        try:
            await self._started_or_failed(starting)
        except BaseException:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self._take_down(clean=False)
            raise

    async def _started_or_failed(self, starting: asyncio.Task[None]) -> None:
        """A node whose metadata log fails would otherwise wait for the rest of its cluster for ever."""
        await asyncio.wait((starting, self.failed), return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            raise self.failed.result()
        starting.result()

    async def _start(self) -> None:
        wanted = StorageLayout.of(_log_dirs(self.settings), self.settings[METADATA_LOG_DIR])
        directories = open_directories(self.ports, wanted, self._held_directories)
        layout = readable_layout(wanted, directories)
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
        self.storage = open_node_storage(self, layout, self._wanted_cluster_id)
        for directory in self._held_directories:
            directory.id = self.storage.directory_ids[directory.path]
        self.log_directories += [directories[path] for path in wanted.log_dirs]
        await self._start_controller()
        if self.is_broker:
            await self._start_broker()
        self.is_ready = True
        for listener in self.listeners:
            listener.start_serving()

    async def _start_controller(self) -> None:
        self.controller = await ControllerNode.start(self.ports, controller_config(self), self._fail, peers=self.peers)
        self.controller.on_leadership(self.watch.leadership_changed)
        self.watch.leadership_changed(self.controller.is_active)
        self.controller.subscribe(self._image_changed)
        self.ignored_configs.start(self.controller.image)
        self.controller.subscribe(self.ignored_configs.metadata_changed)
        self.controller.subscribe(self.watch.metadata_changed)
        for listener in self.listeners:
            if listener.is_controller:
                listener.start_serving()
        if "controller" in self.settings[PROCESS_ROLES]:
            self.membership.keep_controller_registered(self.controller.config.controller_endpoints)
            self.watch.start()

    async def _start_broker(self) -> None:
        # A directory that could not be opened has no such epoch: then the stop does not count as a clean one.
        epochs = {directory.clean_broker_epoch for directory in self.log_directories}
        await self.membership.register(
            registered_endpoints(self.endpoints, self.listeners, controller=False),
            self.storage.log_dir_ids,
            clean_shutdown_epoch=epochs.pop() if len(epochs) == 1 else -1,
        )
        # The image holds this very registration: no leadership of an earlier life is in it.
        image = self.controller.image
        self.follow_broker_settings(image)
        self.partitions.load(image)
        self._tidy_up()
        for listener in (self.partitions.apply, self.groups.metadata_changed, self.membership.metadata_changed):
            self.controller.subscribe(listener)
        self.controller.subscribe_log(self.membership.quorum_moved)
        self.isr_changes.start()
        await self.membership.unfence()
        self.maintenance.start()

    def _tidy_up(self) -> None:
        """Folders that the metadata does not know are set aside; those of deleted topics are removed for good."""
        for directory in self.log_directories:
            for stray in directory.set_strays_aside():
                _log.warning("a partition that no topic knows was set aside", directory=directory.path, name=stray)
            for path in directory.to_remove if directory.failure is None else ():
                self.deletions.remove_later(path, 0)

    def _fail(self, error: BaseException) -> None:
        """The metadata log is broken: this node cannot go on."""
        _log.error("the metadata log failed; the node stops", error=str(error))
        self._has_failed(error)

    def fail(self, error: BaseException) -> None:
        """This node has no place in the cluster any more."""
        _log.error("the node stops", error=str(error))
        self._has_failed(error)

    def _has_failed(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_result(error)

    # --- going down

    async def leave(self) -> None:
        """Hand over what this broker leads, and go on without it; the first half of a stop."""
        await self.membership.leave()

    async def stop(self) -> None:
        """Stop in order: nothing acknowledged is lost, and the next start needs no recovery."""
        await self._take_down(clean=True)

    async def _take_down(self, *, clean: bool) -> None:
        leaves = clean and hasattr(self, "controller") and not self.failed.done()
        if leaves and not self._is_alone:
            # Clients are served on: they hear from here who leads instead, and may write until then.
            await self.membership.leave()
            leaves = False
        self.is_ready = False
        for listener in self.listeners:
            # The other controllers need this one until it says that it goes.
            if not listener.is_controller or leaves:
                listener.stop_serving()
        await self.maintenance.stop()
        await self._end_background()
        await self.partitions.stop()
        await self.isr_changes.stop()
        await self.replica_fetchers.stop()
        if leaves:
            await self.membership.leave()
        elif clean and hasattr(self, "controller"):
            await self.membership.let_others_leave()
        await self.membership.close()
        await self.watch.close()
        if hasattr(self, "controller"):
            await though_the_disk_fails(self.controller.close())
        self.peers.close()
        for listener in self.listeners:
            listener.close()
        self.groups.close()
        self.transactions.close()
        await self.durability.stop()
        await self.deletions.stop()
        for directory in self._held_directories:
            if clean:
                await close_in_order(directory, self.ports.workers, self.broker_epoch)
            else:
                directory.let_go()
        self.ports.workers.close()

    @property
    def _is_alone(self) -> bool:
        """Whether nobody else votes, and nobody else could lead anything."""
        others = any(broker.active and broker.id != self.node_id for broker in self.image.brokers.values())
        return not others and self.controller.log.quorum.voters.ids() == (self.node_id,)

    async def _end_background(self) -> None:
        if self._background:
            _, late = await asyncio.wait(self._background, timeout=BACKGROUND_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def _log_dirs(settings: Settings) -> tuple[str, ...]:
    return settings[LOG_DIRS] or settings[LOG_DIR]
