"""Which brokers live: the active controller's soft state about heartbeats.

A broker that is not fenced has a session, which every heartbeat renews; one that was silent for
`broker.session.timeout.ms` is fenced. None of this is in the log: a controller that becomes active gives every broker
that is not fenced a fresh session, since the one before it may have heard from it a moment ago.

A controller whose own event loop stood still cannot tell who was silent: the heartbeats may be waiting in its sockets.
It looks at the sessions at a steady pace (`look_every_ms`); a look that comes late gives every session the time by
which it is late.

How often a broker speaks is its own setting, and a broker of Apache Kafka does so every two seconds. One that speaks so
rarely that a session has no room for three heartbeats is given the time of three (never more than Kafka's session).
How a broker will speak does not show while it is fenced: whoever waits to be let in asks again and again. So one that
may be of Apache Kafka, by features that are not ours, counts as such until its pace is known; and so it does for a
controller that has just become active.

Besides, heartbeats tell how far each broker has replayed the metadata log. A broker in controlled shutdown may stop
once all active ones know of its successors, i.e. have come to the offset at which its leaderships moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from millstream.metadata.features import SUPPORTED_FEATURES

if TYPE_CHECKING:
    from millstream.metadata.image import Broker, MetadataImage

NO_OFFSET = -1
# A heartbeat may be lost, and another one late, before anybody is fenced for it.
HEARTBEATS_PER_SESSION = 3
# Apache Kafka's default.
SESSION_OF_KAFKA_MS = 9_000
PACE_OF_KAFKA_MS = 2_000


@dataclass(slots=True)
class _Session:
    epoch: int
    heard_ms: int
    spoke_ms: int | None = None
    """When the last heartbeat came, whatever was allowed for since."""
    pace_ms: int = 0
    """The longest time between two of the latest heartbeats."""
    offset: int = NO_OFFSET
    shutdown_offset: int = NO_OFFSET


class BrokerSessions:
    """The sessions of all brokers that this controller, while active, has heard of."""

    def __init__(self, timeout_ms: int, look_every_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.look_every_ms = look_every_ms
        self._sessions: dict[int, _Session] = {}
        self._looked_ms: int | None = None

    def begin(self, image: MetadataImage, now_ms: int) -> None:
        """This controller becomes active: whoever is not fenced gets a whole session from now on."""
        self._looked_ms = now_ms
        self._sessions = {
            broker.id: _Session(broker.epoch, now_ms, pace_ms=PACE_OF_KAFKA_MS if may_be_kafkas(broker) else 0)
            for broker in image.brokers.values()
            if not broker.fenced
        }

    def heard(self, broker_id: int, epoch: int, offset: int, now_ms: int, *, pace_unknown: bool = False) -> None:
        """A heartbeat came; the broker has replayed the log up to `offset`."""
        session = self._sessions.get(broker_id)
        if session is None or session.epoch != epoch:
            session = self._sessions[broker_id] = _Session(epoch, now_ms)
        if pace_unknown:
            session.pace_ms = PACE_OF_KAFKA_MS
        elif session.spoke_ms is not None:
            session.pace_ms = max(now_ms - session.spoke_ms, session.pace_ms // 2)
        session.spoke_ms = now_ms
        session.heard_ms = max(session.heard_ms, now_ms)
        session.offset = max(session.offset, offset)

    def _is_over(self, session: _Session, now_ms: int) -> bool:
        silent_ms = now_ms - session.heard_ms
        if silent_ms < self.timeout_ms:
            return False
        return silent_ms >= min(HEARTBEATS_PER_SESSION * session.pace_ms, SESSION_OF_KAFKA_MS)

    def is_alive(self, broker_id: int, epoch: int, now_ms: int) -> bool:
        """Whether this very incarnation was heard of within a session's time."""
        session = self._sessions.get(broker_id)
        return session is not None and session.epoch == epoch and not self._is_over(session, now_ms)

    def doubt(self, broker_id: int, epoch: int, now_ms: int, within_ms: int) -> None:
        """Something speaks against the broker: it has to be heard of within that time."""
        session = self._sessions.get(broker_id)
        if session is not None and session.epoch == epoch:
            session.heard_ms = min(session.heard_ms, now_ms - self.timeout_ms + min(within_ms, self.timeout_ms))

    def forget(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def expired(self, image: MetadataImage, now_ms: int) -> list[tuple[int, int]]:
        """(id, epoch) of every broker that is not fenced and was silent for too long."""
        self._allow_for_own_pause(now_ms)
        found = []
        for broker in image.brokers.values():
            if broker.fenced:
                continue
            session = self._sessions.get(broker.id)
            if session is None or session.epoch != broker.epoch:
                # Unfenced by a record that this controller only replayed: its time starts now.
                self._sessions[broker.id] = _Session(broker.epoch, now_ms)
            elif self._is_over(session, now_ms):
                found.append((broker.id, broker.epoch))
        return found

    def _allow_for_own_pause(self, now_ms: int) -> None:
        late_ms = 0 if self._looked_ms is None else now_ms - self._looked_ms - self.look_every_ms
        self._looked_ms = now_ms
        if late_ms > self.look_every_ms:
            for session in self._sessions.values():
                session.heard_ms = min(now_ms, session.heard_ms + late_ms)

    # Controlled shutdown

    def shutting_down(self, broker_id: int, offset: int) -> None:
        """The broker's leaderships have moved with the records up to `offset`; said again, it changes nothing."""
        session = self._sessions.get(broker_id)
        if session is not None and session.shutdown_offset == NO_OFFSET:
            session.shutdown_offset = offset

    def may_stop(self, image: MetadataImage, broker_id: int) -> bool:
        """Whether all active brokers know who leads instead of this one."""
        session = self._sessions.get(broker_id)
        if session is None or session.shutdown_offset == NO_OFFSET:
            return False
        return all(
            self._offset_of(broker.id) >= session.shutdown_offset
            for broker in image.brokers.values()
            if broker.active and broker.id != broker_id
        )

    def _offset_of(self, broker_id: int) -> int:
        session = self._sessions.get(broker_id)
        return NO_OFFSET if session is None else session.offset


def may_be_kafkas(broker: Broker) -> bool:
    """Whether it registered a feature that is not ours. (Ours do too where the cluster has finalized one.)"""
    return any(name not in SUPPORTED_FEATURES for name in broker.features)
