"""What the active controller does unasked: fence brokers that are gone or silent, give leadership back, elect leaders.

Every controller has one of these, and only that of the active one does anything. All of it is soft state: a controller
that becomes active gives every broker a fresh session (metadata/broker_sessions.py); except that the node that was
active before, where it is a broker as well, has to be heard of soon: it is probably why there was an election.

A process that is killed closes its connections and refuses new ones at once. So when the connection breaks that brings
a broker's heartbeats, the broker is dialled: one whose listeners all refuse is fenced, without waiting for the end of
its session (ADR 15). Any other outcome proves nothing, and the session decides.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from millstream.metadata.broker_lifecycle import decide_fence_broker
from millstream.metadata.broker_sessions import BrokerSessions
from millstream.metadata.decision import Decision
from millstream.metadata.leadership import changes_for_leaderless, changes_for_preferred_leaders
from millstream.protocol.errors import BrokerError
from millstream.runtime.logs import Logger
from millstream.settings import (
    AUTO_LEADER_REBALANCE_ENABLE,
    BROKER_SESSION_TIMEOUT_MS,
    LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS,
    UNCLEAN_LEADER_ELECTION_INTERVAL_MS,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.broker.connection import Connection
    from millstream.broker.node import Node
    from millstream.metadata.delta import Changes
    from millstream.metadata.image import Broker, MetadataImage

# So often within a session's time it is looked who is still there: a silent broker is fenced at most this part late.
LOOKS_PER_SESSION = 18
# When a broker is dialled whose connection broke. A process that is ending closes its sockets one after the other.
DIALS_AFTER_S = (0.0, 0.1, 0.3)
DIAL_TIMEOUT_S = 1.0
# The time in which the node that was the active controller must be heard of: brokers speak up at once in a new epoch,
# and where their loop is busy, a thread speaks for them to all controllers.
TAKEOVER_MS = 750
# Kafka's own bound: one batch of records, and not all partitions of a large cluster without a leader at once.
PREFERRED_ELECTIONS_MAX = 1_000

_log = Logger("millstream.controller")


class BrokerWatch:
    """See the module's docstring."""

    def __init__(self, node: Node) -> None:
        self._node = node
        timeout_ms = node.settings[BROKER_SESSION_TIMEOUT_MS]
        self.sessions = BrokerSessions(timeout_ms, max(timeout_ms // LOOKS_PER_SESSION, 1))
        self._task: asyncio.Task[None] | None = None
        self._balance_at_ms = 0
        self._elect_at_ms = 0

    def start(self) -> None:
        """From now on it is looked at the sessions, while this controller is active."""
        self._task = self._node.loop.create_task(self._run())

    def leadership_changed(self, is_active: bool) -> None:  # noqa: FBT001  # as the controller calls it
        """This node became the active controller, or is it no longer."""
        if is_active:
            now_ms = self._node.ports.clock.monotonic_ms()
            image = self._node.controller.image
            self.sessions.begin(image, now_ms)
            before = image.brokers.get(self._node.controller.last_leader_id)
            if before is not None and before.id != self._node.node_id:
                self.sessions.doubt(before.id, before.epoch, now_ms, TAKEOVER_MS)
                self._suspect(before.id, before.epoch)
            self._plan(now_ms)

    def heard_from(self, broker_id: int, epoch: int, connection: Connection | None) -> None:
        """A heartbeat came by this connection; those of this node's own broker need none."""
        if connection is not None and connection.when_lost is None:
            connection.when_lost = partial(self._suspect, broker_id, epoch)

    def metadata_changed(self, _image: MetadataImage, changes: Changes) -> None:
        """A setting changed: it may be the one that allows an election which was not allowed before."""
        if changes.configs:
            self._elect_at_ms = 0

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _plan(self, now_ms: int) -> None:
        settings = self._node.settings
        self._balance_at_ms = now_ms + settings[LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS] * 1000
        self._elect_at_ms = now_ms + settings[UNCLEAN_LEADER_ELECTION_INTERVAL_MS]

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.sessions.look_every_ms / 1000)
            if not self._node.controller.is_active:
                continue
            try:
                await self._look(self._node.ports.clock.monotonic_ms())
            except BrokerError as error:
                # Another one is active by now, or the log takes nothing at the moment.
                _log.warning("the active controller could not do its rounds", error=str(error))

    async def _look(self, now_ms: int) -> None:
        for broker_id, epoch in self.sessions.expired(self._node.controller.image, now_ms):
            _log.warning("a broker is silent and gets fenced", broker=broker_id, epoch=epoch)
            await self._fence(broker_id, epoch)
        if now_ms >= self._balance_at_ms and self._node.settings[AUTO_LEADER_REBALANCE_ENABLE]:
            self._balance_at_ms = now_ms + self._node.settings[LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS] * 1000
            moved = await self._submit(self._balance)
            if moved:
                _log.info("leadership went back to preferred replicas", partitions=moved)
        if now_ms >= self._elect_at_ms:
            self._elect_at_ms = now_ms + self._node.settings[UNCLEAN_LEADER_ELECTION_INTERVAL_MS]
            elected = await self._submit(self._elect)
            if elected:
                _log.warning("leaders were elected that may lack records", partitions=elected)

    # --- processes that are gone

    def _suspect(self, broker_id: int, epoch: int) -> None:
        """Something speaks against this incarnation of a broker."""
        if self._node.controller.is_active:
            self._node.background(self._fence_if_gone(broker_id, epoch))

    async def _fence_if_gone(self, broker_id: int, epoch: int) -> None:
        for pause_s in DIALS_AFTER_S:
            await asyncio.sleep(pause_s)
            broker = self._node.controller.image.brokers.get(broker_id)
            if broker is None or broker.epoch != epoch or broker.fenced or not self._node.controller.is_active:
                return
            if await self._refuses(broker):
                _log.warning("a broker's process is gone, and it gets fenced", broker=broker_id, epoch=epoch)
                await self._fence(broker_id, epoch)
                return

    async def _refuses(self, broker: Broker) -> bool:
        """Whether nobody listens at any of its addresses, and their machines say so."""
        for endpoint in broker.endpoints:
            try:
                async with asyncio.timeout(DIAL_TIMEOUT_S):
                    transport, _ = await self._node.ports.network.connect(
                        asyncio.Protocol, endpoint.host, endpoint.port
                    )
            except ConnectionRefusedError:
                continue
            except OSError:
                return False
            transport.close()
            return False
        return bool(broker.endpoints)

    async def _fence(self, broker_id: int, epoch: int) -> None:
        def decide(image: MetadataImage, _now_ms: int) -> Decision[None]:
            broker = image.brokers.get(broker_id)
            if broker is None or broker.epoch != epoch:
                return Decision((), None)
            return decide_fence_broker(image, broker_id, epoch)

        await self._node.controller.submit(decide)

    async def _submit(self, decide: Callable[[MetadataImage], Decision[int]]) -> int:
        return await self._node.controller.submit(lambda image, _: decide(image))

    @staticmethod
    def _balance(image: MetadataImage) -> Decision[int]:
        records = tuple(changes_for_preferred_leaders(image, PREFERRED_ELECTIONS_MAX))
        return Decision(records, len(records))

    @staticmethod
    def _elect(image: MetadataImage) -> Decision[int]:
        records = tuple(changes_for_leaderless(image))
        return Decision(records, len(records))
