"""TCP between simulated machines: asyncio's transports and protocols on virtual time.

A connection is two transports that hand bytes to each other after a seeded delay, in order, cut into pieces of seeded
size (so that nobody relies on one write being one read). Either end can be lost, by itself or because its machine is.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from random import Random
    from ssl import SSLContext

_DELAY_S_MAX = 0.001
_DEFAULT_HIGH_BYTES = 64 * 1024


class SimulatedTransport(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: SimulatedNetwork, local: tuple[str, int], remote: tuple[str, int]) -> None:
        super().__init__({"peername": remote, "sockname": local})
        self._network = network
        self._protocol = cast("asyncio.BaseProtocol", None)
        self._peer = cast("SimulatedTransport", None)
        self._arriving: deque[bytes | None] = deque()
        self._last_arrival_s = 0.0
        self._reading = True
        self._closing = False
        self._lost = False
        self._high_bytes = _DEFAULT_HIGH_BYTES
        self._writer_paused = False

    def attach(self, protocol: asyncio.BaseProtocol, peer: SimulatedTransport) -> None:
        self._protocol = protocol
        self._peer = peer

    # --- asyncio's interface

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._network.loop.call_soon(self._deliver)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = _DEFAULT_HIGH_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        return sum(len(piece) for piece in self._peer._arriving if piece is not None)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self._lost:
            return
        data = bytes(data)
        while data:
            cut = self._network.random.randint(1, len(data)) if len(data) < 256 else len(data)
            self._peer._arrives(data[:cut])
            data = data[cut:]
        if not self._writer_paused and self.get_write_buffer_size() > self._high_bytes:
            self._writer_paused = True
            self._protocol.pause_writing()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._peer._arrives(None)
            self._network.loop.call_soon(self.lose, None)

    def abort(self) -> None:
        self._closing = True
        self._peer._arrives(None)
        self._network.loop.call_soon(self.lose, None)

    # --- what the network does

    def _arrives(self, data: bytes | None) -> None:
        """Bytes (or the end) from the peer: delivered after a delay, never before what was sent earlier."""
        loop = self._network.loop
        arrival_s = max(self._last_arrival_s, loop.time() + self._network.random.random() * _DELAY_S_MAX)
        self._last_arrival_s = arrival_s
        self._arriving.append(data)
        loop.call_at(arrival_s, self._deliver)

    def _deliver(self) -> None:
        if self._lost or not self._reading or not self._arriving:
            return
        data = self._arriving.popleft()
        if data is None:
            self.lose(None)
            return
        self._hand_over(data)
        peer = self._peer
        if peer._writer_paused and not peer._lost and peer.get_write_buffer_size() <= peer._high_bytes // 4:
            peer._writer_paused = False
            peer._protocol.resume_writing()
        if self._arriving:
            self._network.loop.call_soon(self._deliver)

    def _hand_over(self, data: bytes) -> None:
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            cast("asyncio.Protocol", protocol).data_received(data)
            return
        rest = data
        while rest and not self._lost:
            buffer = memoryview(cast("bytearray", protocol.get_buffer(-1)))
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            protocol.buffer_updated(count)
            rest = rest[count:]
            if rest and not self._reading:
                self._arriving.appendleft(rest)
                return

    def lose(self, error: Exception | None) -> None:
        """The connection is gone for this end."""
        if self._lost:
            return
        self._lost = self._closing = True
        self._network.forget(self)
        self._protocol.connection_lost(error)

    def vanish(self) -> None:
        """This end's machine is gone: nobody here is told, the other end hears a reset."""
        self._lost = self._closing = True
        self._network.forget(self)
        self._network.loop.call_soon(self._peer.lose, ConnectionResetError("the peer's machine is gone"))


class SimulatedListening:
    """A listening address."""

    def __init__(self, network: SimulatedNetwork, host: str, port: int) -> None:
        self._network = network
        self.host = host
        self.port = port

    def close(self) -> None:
        self._network.listeners.pop((self.host, self.port), None)

    async def wait_closed(self) -> None:
        """Closing takes no time."""


class SimulatedNetwork:
    """All machines and their connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop, random: Random) -> None:
        self.loop = loop
        self.random = random
        self.listeners: dict[tuple[str, int], Callable[[], asyncio.BaseProtocol]] = {}
        self._ends: dict[SimulatedTransport, str] = {}
        self._next_port = 10_000

    def forget(self, end: SimulatedTransport) -> None:
        self._ends.pop(end, None)

    def machine_lost(self, host: str) -> None:
        """A machine crashed: its listeners and connections are gone, its code hears nothing any more."""
        for address in [address for address in self.listeners if address[0] == host]:
            del self.listeners[address]
        for end in [end for end, at in self._ends.items() if at == host]:
            end.vanish()

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,  # bytes in a simulation have nobody to hide from
    ) -> SimulatedListening:
        if port == 0:
            self._next_port += 1
            port = self._next_port
        if (host, port) in self.listeners:
            raise OSError(98, "address already in use")
        self.listeners[host, port] = factory
        return SimulatedListening(self, host, port)

    async def connect(
        self,
        factory: Callable[[], Any],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
    ) -> tuple[asyncio.BaseTransport, Any]:
        await asyncio.sleep(self.random.random() * _DELAY_S_MAX)
        server_factory = self.listeners.get((host, port))
        if server_factory is None:
            raise ConnectionRefusedError(111, f"nobody listens on {host}:{port}")
        self._next_port += 1
        client_address = ("client", self._next_port)
        client = SimulatedTransport(self, client_address, (host, port))
        server = SimulatedTransport(self, (host, port), client_address)
        client_protocol, server_protocol = factory(), server_factory()
        client.attach(client_protocol, server)
        server.attach(server_protocol, client)
        self._ends[client] = "client"
        self._ends[server] = host
        server_protocol.connection_made(server)
        client_protocol.connection_made(client)
        return client, client_protocol
