"""The sockets that this node listens on, and the connections that came through them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from millstream.broker.connection import Connection
from millstream.broker.requests import Calls
from millstream.runtime.limits import descriptors_for_connections
from millstream.runtime.logs import Logger
from millstream.settings import (
    CONNECTIONS_MAX_IDLE_MS,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MILLSTREAM_CONNECTION_QUEUED_BYTES_MAX,
    MILLSTREAM_CONNECTION_UNSENT_BYTES_MAX,
    MILLSTREAM_REQUEST_WITHOUT_RECORDS_BYTES_MAX,
    MILLSTREAM_UNSENT_BYTES_MAX,
    QUEUED_MAX_REQUEST_BYTES,
    SOCKET_REQUEST_MAX_BYTES,
)
from millstream.settings.listeners import connections_per_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.broker.dispatch import Handling
    from millstream.broker.node import Node
    from millstream.runtime.ports import Listening
    from millstream.settings import Settings

_log = Logger("millstream.listener")


@dataclass(slots=True)
class ConnectionLimits:
    """Counted over all listeners of the node."""

    total_max: int
    per_host_max: int
    idle_ms_max: int
    received_bytes_max: int
    """`queued.max.request.bytes`: of all receive buffers together."""
    unsent_bytes_max: int
    """Of all answers that peers have not read yet."""
    per_host_exceptions: Mapping[str, int]
    total: int = 0
    received_bytes: int = 0

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(
            total_max=min(settings[MAX_CONNECTIONS], descriptors_for_connections()),
            per_host_max=settings[MAX_CONNECTIONS_PER_IP],
            idle_ms_max=settings[CONNECTIONS_MAX_IDLE_MS],
            received_bytes_max=settings[QUEUED_MAX_REQUEST_BYTES],
            unsent_bytes_max=settings[MILLSTREAM_UNSENT_BYTES_MAX],
            per_host_exceptions=connections_per_address(settings),
        )

    def follow(self, settings: Settings) -> None:
        """Settings changed live."""
        self.total_max = min(settings[MAX_CONNECTIONS], descriptors_for_connections())
        self.per_host_max = settings[MAX_CONNECTIONS_PER_IP]
        self.idle_ms_max = settings[CONNECTIONS_MAX_IDLE_MS]
        self.per_host_exceptions = connections_per_address(settings)

    def allows_from(self, host: str, open_from_host: int) -> bool:
        return self.total < self.total_max and open_from_host < self.per_host_exceptions.get(host, self.per_host_max)


class Listener:
    """One named listener (`PLAINTEXT://host:port`) and its connections."""

    def __init__(
        self, broker: Node, name: str, host: str, port: int, *, is_controller: bool, handlers: dict[int, Handling]
    ) -> None:
        self.broker = broker
        self.name = name
        self.host = host
        self.port = port
        self.is_controller = is_controller
        self.calls = Calls(
            handlers,
            controller=is_controller,
            plain_bytes_max=broker.settings[MILLSTREAM_REQUEST_WITHOUT_RECORDS_BYTES_MAX],
        )
        self.scratch = broker.scratch
        self.frame_bytes_max = broker.settings[SOCKET_REQUEST_MAX_BYTES]
        self.queued_bytes_max = broker.settings[MILLSTREAM_CONNECTION_QUEUED_BYTES_MAX]
        self.unsent_bytes_max = broker.settings[MILLSTREAM_CONNECTION_UNSENT_BYTES_MAX]
        # Far more than any client has in flight; a peer beyond it is not read from until some are answered.
        self.unsent_answers_max = 1000
        # Dictionaries keep the order of arrival, which sets would not.
        self.connections: dict[Connection, None] = {}
        self._hosts: dict[str, int] = {}
        self._listening: Listening | None = None
        self.is_serving = False

    async def open(self) -> None:
        self._listening = await self.broker.ports.network.listen(lambda: Connection(self), self.host, self.port)
        self.port = self._listening.port

    def admit(self, connection: Connection) -> bool:
        """Count a new connection, or refuse it."""
        limits = self.broker.connection_limits
        host = connection.peer_host
        if not limits.allows_from(host, self._hosts.get(host, 0)):
            self.broker.metrics.connections_refused += 1
            _log.warning("connection refused: too many", peer=host, connections=limits.total)
            return False
        limits.total += 1
        self._hosts[host] = self._hosts.get(host, 0) + 1
        self.connections[connection] = None
        return True

    def forget(self, connection: Connection) -> None:
        if connection not in self.connections:
            return
        del self.connections[connection]
        self.broker.connection_limits.total -= 1
        host = connection.peer_host
        self._hosts[host] -= 1
        if not self._hosts[host]:
            del self._hosts[host]

    def check_unsent(self) -> None:
        """A peer stopped reading. If all unsent answers together are too much, those with the most are let go."""
        limit = self.broker.connection_limits.unsent_bytes_max
        unsent = [
            (connection.transport.get_write_buffer_size(), connection)
            for listener in self.broker.listeners
            for connection in listener.connections
        ]
        total = sum(size for size, _ in unsent)
        for size, connection in sorted(unsent, key=lambda entry: -entry[0]):
            if total <= limit:
                return
            connection.give_up("its answers, unread, take more memory than the broker can spare")
            total -= size

    def start_serving(self) -> None:
        """The node is ready for this listener: answer those who connected before it was."""
        self.is_serving = True
        for connection in list(self.connections):
            connection.serve()

    def let_go_of_idle(self, now_ms: int) -> None:
        """Close what has been silent for too long, and take back buffers that nobody uses."""
        idle_ms_max = self.broker.connection_limits.idle_ms_max
        for connection in list(self.connections):
            idle_ms = now_ms - connection.last_heard_ms
            if 0 < idle_ms_max < idle_ms:
                connection.close()
            elif idle_ms > 1000:
                connection.release_idle_buffer()

    def stop_serving(self) -> None:
        """Take no more requests; those under way are still answered."""
        self.is_serving = False
        self.stop_listening()

    def stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.close()

    def close(self) -> None:
        self.stop_listening()
        for connection in list(self.connections):
            connection.close()
