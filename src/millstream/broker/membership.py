"""This broker's place in the cluster: registration, heartbeats, controlled shutdown (KIP-631).

    register()  the active controller gives this incarnation its epoch; the broker is fenced
    unfence()   it has replayed its registration and loaded its logs: it wants to serve
    leave()     it wants to stop: others take over what it leads, then it is told that it may

From the registration on, heartbeats go out every `broker.heartbeat.interval.ms` and tell how far the metadata has been
replayed. Some go out at once: when this broker wants something else than before; when it has heard of another one's
controlled shutdown, since that one waits until everybody has; when another controller is active, which does not know
yet who lives.

A busy event loop must not cost a broker its session. A thread (`Network.pulse`) repeats the last heartbeat while the
loop is late, for as long as it may be only busy, which may be longer than a session; a loop that stands still for
longer has hung, the thread falls silent too, and the controller fences the broker.

Whether what this broker knows of itself can be relied on (`is_in_touch`) is touch.py's.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from millstream.broker.touch import Touch
from millstream.metadata.features import registered_features
from millstream.protocol.errors import BrokerError, CoordinatorLoading, ErrorCode, RequestTimedOut, StorageError
from millstream.protocol.frames import encode_request
from millstream.protocol.messages import broker_registration, controller_registration
from millstream.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from millstream.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from millstream.protocol.messages.broker_registration import BrokerRegistrationRequest
from millstream.protocol.messages.controller_registration import ControllerRegistrationRequest
from millstream.runtime.logs import Logger
from millstream.settings import (
    BROKER_HEARTBEAT_INTERVAL_MS,
    BROKER_RACK,
    BROKER_SESSION_TIMEOUT_MS,
    CONTROLLED_SHUTDOWN_ENABLE,
    INITIAL_BROKER_REGISTRATION_TIMEOUT_MS,
)

if TYPE_CHECKING:
    from millstream.broker.node import Node
    from millstream.metadata.delta import Changes
    from millstream.metadata.image import Endpoint, MetadataImage
    from millstream.protocol.uuid import Uuid
    from millstream.runtime.ports import Pulse

NO_EPOCH = -1
RETRY_PAUSE_S = 0.1
# While somebody waits for the controller's word (a start, a stop), it is asked more often.
IMPATIENT_S = 0.02
ASK_TIMEOUT_MS = 30_000
PRODUCER_IDS_TIMEOUT_MS = 10_000
# A loop that has not shown itself for so long is not busy: it has hung. Apache Kafka's session, which allows as much.
HUNG_MS = 9_000
# Every controller knows it, and a repeated heartbeat needs no more.
PULSE_VERSION = 0
# A stop does not wait for ever for a controller that is not there: the rest of the cluster may have stopped before.
# Long enough for a quorum that has a majority to elect another one.
LEAVE_WITHOUT_ANSWER_MS = 4_000
# How long a controller stays for others that leave at the same time: they need the quorum for it.
OTHERS_LEAVE_S = 2.0
# A controller's full disk may have room again, or another one become active.
_PASSING = (
    ErrorCode.DUPLICATE_BROKER_REGISTRATION,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.REQUEST_TIMED_OUT,
)

_log = Logger("millstream.membership")


class RegistrationRefused(Exception):
    """The controller will not have this node; the sentence says why."""


class Membership:
    """See the module's docstring."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.incarnation_id = node.ports.random.uuid()
        self.epoch = NO_EPOCH
        self.is_fenced = True
        self._wants_fence = True
        self._wants_stop = False
        self._may_stop = asyncio.Event()
        self._unfenced = asyncio.Event()
        self._beat_now = asyncio.Event()
        self._beating: asyncio.Task[None] | None = None
        self._registering: asyncio.Task[None] | None = None
        self._pulse: Pulse | None = None
        self._answered_ms = 0
        self._touch = Touch(node)
        self._quorum_epoch = -1

    # --- coming in

    async def register(
        self, endpoints: tuple[Endpoint, ...], log_dirs: tuple[Uuid, ...], clean_shutdown_epoch: int
    ) -> None:
        """Get an epoch. On return this node's image holds the registration."""
        node = self._node
        request = BrokerRegistrationRequest(
            broker_id=node.node_id,
            cluster_id=node.cluster_id,
            incarnation_id=self.incarnation_id,
            listeners=[
                broker_registration.Listener(
                    name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                )
                for each in endpoints
            ],
            features=[],
            rack=node.settings[BROKER_RACK],
            log_dirs=list(log_dirs),
            previous_broker_epoch=clean_shutdown_epoch,
        )
        patience_ms = node.settings[INITIAL_BROKER_REGISTRATION_TIMEOUT_MS]
        deadline_ms = node.ports.clock.monotonic_ms() + patience_ms
        await self._know_features(patience_ms)
        refusal: ErrorCode | None = None
        while True:
            left_ms = max(deadline_ms - node.ports.clock.monotonic_ms(), 1)
            # Told anew each time: levels that were finalized meanwhile widen what is supported.
            request.features = [
                broker_registration.Feature(
                    name=name, min_supported_version=known.min_level, max_supported_version=known.max_level
                )
                for name, known in sorted(registered_features(node.image.features).items())
            ]
            try:
                answer = await node.ask_controller(request, timeout_ms=left_ms)
            except RequestTimedOut as error:
                if refusal is not None:
                    raise RegistrationRefused(_refused(refusal)) from error
                raise RegistrationRefused(f"No active controller took the registration: {error.message}") from error
            if answer.error_code == ErrorCode.NONE:
                break
            code = ErrorCode(answer.error_code)
            if code is not refusal:
                _log.warning(_refused(code), broker=node.node_id)
            refusal = code
            if code is ErrorCode.KAFKA_STORAGE_ERROR and node.controller.is_active:
                raise StorageError("The metadata log takes nothing: the disk that holds it is full, or fails.")
            if code not in _PASSING or left_ms <= 1:
                raise RegistrationRefused(_refused(code))
            await asyncio.sleep(RETRY_PAUSE_S)
        self.epoch = answer.broker_epoch
        await node.wait_for_image(self._is_registered_in)

    def _is_registered_in(self, image: MetadataImage) -> bool:
        # Its offset does not tell: the quorum's own records take offsets, too, and the epoch may lie in front of the
        # record. In an image without it this broker leads what it led before it went down, whatever it has lost.
        broker = image.brokers.get(self._node.node_id)
        return broker is not None and broker.epoch >= self.epoch

    async def _know_features(self, patience_ms: int) -> None:
        """What is registered as supported is widened to what is finalized: it takes a first look at the metadata."""
        try:
            async with asyncio.timeout(patience_ms / 1000):
                await self._node.wait_for_image(lambda image: image.metadata_version > 0)
        except TimeoutError:
            raise RegistrationRefused(
                "No metadata came: the controllers cannot be reached, or find no majority."
            ) from None

    async def unfence(self) -> None:
        """Begin to send heartbeats, and wait until the cluster counts on this broker."""
        self._wants_fence = False
        # The first one here, so that a node which is alone needs no second turn.
        await self._beat()
        self._beating = self._node.loop.create_task(self._keep_beating())
        await self._unfenced.wait()
        own = self._node.node_id
        await self._node.wait_for_image(lambda image: own in image.brokers and not image.brokers[own].fenced)

    # --- heartbeats

    @property
    def _interval_ms(self) -> int:
        """Three in a session at least: a file that says Kafka's interval of 2 s may leave the session at our 1.5 s."""
        settings = self._node.settings
        return min(settings[BROKER_HEARTBEAT_INTERVAL_MS], settings[BROKER_SESSION_TIMEOUT_MS] // 3)

    async def _keep_beating(self) -> None:
        while True:
            impatient = self._wants_stop or (self.is_fenced and not self._wants_fence)
            pause_s = IMPATIENT_S if impatient else self._interval_ms / 1000
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._beat_now.wait()
            self._beat_now.clear()
            await self._beat()

    def _request(self) -> BrokerHeartbeatRequest:
        return BrokerHeartbeatRequest(
            broker_id=self._node.node_id,
            broker_epoch=self.epoch,
            current_metadata_offset=self._node.image.offset,
            want_fence=self._wants_fence,
            want_shut_down=self._wants_stop,
            # Each time: whoever is the active controller by then knows it, or takes it in. One that could not be opened
            # has not been registered.
            offline_log_dirs=[
                directory.id
                for directory in self._node.log_directories
                if directory.was_opened and directory.failure is not None
            ],
        )

    async def _beat(self) -> None:
        node = self._node
        timeout_ms = node.settings[BROKER_SESSION_TIMEOUT_MS]
        sent_ms = node.ports.clock.monotonic_ms()
        try:
            answer = await node.ask_controller(self._request(), timeout_ms=timeout_ms, purpose="heartbeat")
        except RequestTimedOut as error:
            _log.warning("no heartbeat reaches a controller", error=error.message)
            return
        self._answered_ms = node.ports.clock.monotonic_ms()
        self._heard(answer)
        if answer.error_code == ErrorCode.NONE and not answer.is_fenced:
            self._touch.heard_of(sent_ms, self._answered_ms)
        if not self._may_stop.is_set():
            self._repeat_while_busy()

    @property
    def is_in_touch(self) -> bool:
        """Whether the session of this broker stands for certain: nobody else leads what it leads."""
        return self._touch.is_certain

    def _repeat_while_busy(self) -> None:
        addresses = self._node.controller.other_controllers()
        if not addresses:
            return
        if self._pulse is None:
            hung_ms = max(self._node.settings[BROKER_SESSION_TIMEOUT_MS], HUNG_MS)
            self._pulse = self._node.ports.network.pulse(self._interval_ms * 3 // 2, hung_ms)
        self._pulse.beat(addresses, encode_request(self._request(), PULSE_VERSION, 0, self._node.peers.client_id))

    def _heard(self, answer: BrokerHeartbeatResponse) -> None:
        code = ErrorCode(answer.error_code)
        if code in (ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED):
            # Another one has taken this broker's place, or an administrator has struck it off: it must not go on.
            self._node.fail(RegistrationRefused(f"This broker's registration is no longer in force: {code.meaning}"))
            self._may_stop.set()
            return
        if code is ErrorCode.KAFKA_STORAGE_ERROR and self._wants_stop:
            _log.error("the stop could not be written into the metadata; the next start recovers")
            self._may_stop.set()
            return
        if code is not ErrorCode.NONE:
            _log.warning("the controller refused a heartbeat", error=code.name)
            return
        if answer.is_fenced != self.is_fenced and self._unfenced.is_set() and not self._wants_stop:
            _log.warning("this broker was fenced" if answer.is_fenced else "this broker is no longer fenced")
        self.is_fenced = answer.is_fenced
        if not answer.is_fenced:
            self._unfenced.set()
        if answer.should_shut_down:
            self._may_stop.set()
            if self._pulse is not None:
                self._pulse.close()

    def metadata_changed(self, image: MetadataImage, changes: Changes) -> None:
        """Somebody shuts down and waits until all brokers know: say so at once."""
        for broker_id in changes.brokers:
            broker = image.brokers.get(broker_id)
            if broker is not None and broker.in_controlled_shutdown and not broker.fenced:
                self._beat_now.set()

    def directory_failed(self) -> None:
        """Others shall lead what was in there: say so at once."""
        self._beat_now.set()

    def quorum_moved(self) -> None:
        """The metadata log has grown: in a new epoch another controller is active, and would like to hear of us."""
        epoch = self._node.controller.log.epoch
        if epoch != self._quorum_epoch:
            self._quorum_epoch = epoch
            self._beat_now.set()

    # --- going out

    async def leave(self) -> None:
        """Controlled shutdown: on return nobody counts on this broker, or no controller can be reached."""
        node = self._node
        if self.epoch == NO_EPOCH or self._beating is None or not node.settings[CONTROLLED_SHUTDOWN_ENABLE]:
            return
        self._wants_stop = True
        # The copy that says otherwise must not be repeated: who was just fenced so as to stop would be unfenced by it.
        self._repeat_while_busy()
        self._beat_now.set()
        await self._allowed_or_alone()

    async def _allowed_or_alone(self) -> None:
        clock = self._node.ports.clock
        self._answered_ms = clock.monotonic_ms()
        while not self._may_stop.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(RETRY_PAUSE_S):
                    await self._may_stop.wait()
            if clock.monotonic_ms() - self._answered_ms > LEAVE_WITHOUT_ANSWER_MS:
                _log.warning("no controller is left to shut down with; leaders will be elected when one is back")
                return

    async def let_others_leave(self) -> None:
        """Before a controller closes: who is about to leave as well gets a moment for it."""
        own = self._node.node_id
        with suppress(TimeoutError):
            async with asyncio.timeout(OTHERS_LEAVE_S):
                await self._node.wait_for_image(
                    lambda image: (
                        not any(
                            broker.in_controlled_shutdown and not broker.fenced and broker.id != own
                            for broker in image.brokers.values()
                        )
                    )
                )

    async def close(self) -> None:
        for task in (self._beating, self._registering):
            if task is not None:
                task.cancel()
        await asyncio.gather(*filter(None, (self._beating, self._registering)), return_exceptions=True)
        self._beating = self._registering = None
        if self._pulse is not None:
            self._pulse.close()

    # --- what else a node asks of the active controller

    async def allocate_producer_ids(self) -> range:
        """A block of producer ids that nobody else has. Without a controller producers are told to come again."""
        request = AllocateProducerIdsRequest(broker_id=self._node.node_id, broker_epoch=self.epoch)
        try:
            answer = await self._node.ask_controller(request, timeout_ms=PRODUCER_IDS_TIMEOUT_MS)
        except RequestTimedOut as error:
            raise CoordinatorLoading(f"no producer id is left: {error.message}") from error
        if answer.error_code != ErrorCode.NONE:
            raise _refusal(answer.error_code)
        return range(answer.producer_id_start, answer.producer_id_start + answer.producer_id_len)

    def keep_controller_registered(self, endpoints: tuple[Endpoint, ...]) -> None:
        """A controller that is not active tells the active one where it listens; who becomes active knows itself."""
        self._registering = self._node.loop.create_task(self._register_controller(endpoints))

    async def _register_controller(self, endpoints: tuple[Endpoint, ...]) -> None:
        node = self._node
        while True:
            known = node.image.controllers.get(node.node_id)
            if known is not None and known.incarnation_id == node.controller.incarnation_id:
                return
            if not node.controller.is_active and node.controller.leader() is not None:
                features = sorted(registered_features(node.image.features).items())
                request = ControllerRegistrationRequest(
                    controller_id=node.node_id,
                    incarnation_id=node.controller.incarnation_id,
                    zk_migration_ready=False,
                    listeners=[
                        controller_registration.Listener(
                            name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol
                        )
                        for each in endpoints
                    ],
                    features=[
                        controller_registration.Feature(
                            name=name, min_supported_version=each.min_level, max_supported_version=each.max_level
                        )
                        for name, each in features
                    ],
                )
                try:
                    await node.ask_controller(request, timeout_ms=ASK_TIMEOUT_MS)
                except BrokerError as error:
                    _log.warning("this controller could not register", error=str(error))
            await asyncio.sleep(1)


class ControllerRefused(BrokerError, code=ErrorCode.UNKNOWN_SERVER_ERROR):
    """The active controller said no."""


def _refusal(code: int) -> BrokerError:
    if code == ErrorCode.KAFKA_STORAGE_ERROR:
        return StorageError("the controller's metadata log takes nothing")
    return ControllerRefused(f"the active controller refused: {ErrorCode(code).name}")


def _refused(code: ErrorCode) -> str:
    return f"The controller refused the registration: {code.name}, {code.meaning}"
