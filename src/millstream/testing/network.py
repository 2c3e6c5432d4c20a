"""TCP between simulated machines: asyncio's transports and protocols on virtual time.

A connection is two transports (`connection.py`) that hand bytes to each other after a seeded delay.

A *link* is one direction between two machines. A blocked link holds everything back, ends and resets of connections
too, as TCP's retransmissions do; when it is healed some connections go on and some are found broken. A slow one adds
its delay. New connections need both directions.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
from math import ceil
from random import Random
from typing import TYPE_CHECKING, Any

from millstream.testing.connection import KERNEL, SimulatedTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from ssl import SSLContext

    from millstream.testing.trace import Trace

    Link = tuple[str, str]

_DELAY_S_MAX = 0.001
_SPIKE_S_MAX = 0.03
# What coincides arrives at a multiple of this: longer than most delays, so that several deliveries meet.
_MEETING_S = 0.002
_CONNECT_TIMEOUT_S = 20.0
# All addresses of a machine; here each has one, its name.
_EVERYWHERE = ("", "0.0.0.0", "::")  # noqa: S104  # nothing is bound here


class SimulatedListening:
    """A listening address."""

    def __init__(
        self, network: SimulatedNetwork, host: str, port: int, factory: Callable[[], asyncio.BaseProtocol]
    ) -> None:
        self._network = network
        self._context = contextvars.copy_context()
        self._factory = factory
        self.host = host
        self.port = port

    def accept(self, end: SimulatedTransport) -> None:
        """A connection came in; the program sees it when it runs."""
        self._network.loop.call_soon(self._serve, end, context=self._context)

    def _serve(self, end: SimulatedTransport) -> None:
        if not end.lost:
            end.attach(self._factory())

    def close(self) -> None:
        self._network.listeners.pop((self.host, self.port), None)

    async def wait_closed(self) -> None:
        """Closing takes no time."""


class SimulatedNetwork:
    """All machines, their links and their connections."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        random: Random,
        trace: Trace | None = None,
        coincidences: Random | None = None,
    ) -> None:
        self.loop = loop
        self.random = random
        self.listeners: dict[tuple[str, int], SimulatedListening] = {}
        self._trace = trace
        self._ends: dict[SimulatedTransport, None] = {}
        self._blocked: dict[Link, None] = {}
        self._dark: dict[str, None] = {}
        self._extra_delay_s: dict[Link, float] = {}
        self._resets: list[tuple[str, SimulatedTransport]] = []
        self.coinciding_share = 0.0
        """How much of what is sent arrives at the next of a few common moments."""
        self._coincidences = coincidences or Random("coincidences")  # noqa: S311  # a simulation has to repeat
        self._next_port = 10_000
        self._connections = 0

    def at(self, host: str) -> HostNetwork:
        """The network as one machine has it: its port."""
        return HostNetwork(self, host)

    def note(self, host: str, event: str) -> None:
        if self._trace is not None:
            self._trace.note(host, event)

    def forget(self, end: SimulatedTransport) -> None:
        self._ends.pop(end, None)

    # --- links

    @property
    def has_blocked_links(self) -> bool:
        return bool(self._blocked or self._dark)

    def is_blocked(self, source: str, target: str) -> bool:
        return (source, target) in self._blocked or source in self._dark or target in self._dark

    def delay_s(self, source: str, target: str) -> float:
        random = self.random.random
        delay = random() * _DELAY_S_MAX
        if random() < 0.01:
            delay += random() * _SPIKE_S_MAX
        if self._extra_delay_s:
            delay += self._extra_delay_s.get((source, target), 0.0)
        return delay

    def arrival_s(self, source: str, target: str) -> float:
        """When something sent now arrives. Some of it meets other deliveries in one turn of the loop."""
        at_s = self.loop.time() + self.delay_s(source, target)
        if self.coinciding_share and self._coincidences.random() < self.coinciding_share:
            at_s = ceil(at_s / _MEETING_S) * _MEETING_S
        return at_s

    def block(self, sources: Iterable[str], targets: Iterable[str], *, one_way: bool = False) -> None:
        """Nothing gets from the first machines to the second ones, and unless `one_way` nothing back. A machine is its
        name; one alone needs no list."""
        for source, target in _links(sources, targets):
            self.note("network", f"{source} no longer reaches {target}")
            self._blocked[source, target] = None
            if not one_way:
                self._blocked[target, source] = None

    def slow_down(
        self, sources: Iterable[str], targets: Iterable[str], delay_s: float, *, one_way: bool = False
    ) -> None:
        """What the first machines send the second ones takes so much longer, and unless `one_way` what comes back."""
        for source, target in _links(sources, targets):
            self.note("network", f"{source} reaches {target} {delay_s} s later")
            self._extra_delay_s[source, target] = delay_s
            if not one_way:
                self._extra_delay_s[target, source] = delay_s

    def heal(self) -> None:
        """All links are open and fast."""
        self.note("network", "healed")
        self._blocked.clear()
        self._extra_delay_s.clear()
        self._go_on()

    def _go_on(self) -> None:
        resets, self._resets = self._resets, []
        for source, end in resets:
            self.send_reset(source, end)
        for end in list(self._ends):
            if end.held_back and not self.is_blocked(end.peer.host, end.host):
                if self.random.random() < 0.5:
                    end.go_on()
                else:
                    # One side had given up by then.
                    end.broken()
                    end.peer.broken()

    def send_reset(self, source: str, end: SimulatedTransport) -> None:
        """The machine `source` knows nothing of this connection."""
        if self.is_blocked(source, end.host):
            self._resets.append((source, end))
        else:
            self.loop.call_later(self.delay_s(source, end.host), end.broken, context=KERNEL)

    def break_connections(self, *, share: float) -> None:
        """Some middlebox forgets some of the connections."""
        for end in list(self._ends):
            if self.random.random() < share:
                end.broken()
                end.peer.broken()

    # --- machines

    def machine_lost(self, host: str, *, power: bool = False) -> None:
        """A program died: its kernel closes its connections. Without power, nobody hears that before it is back."""
        self.note(host, "lost power" if power else "died")
        for address in [address for address in self.listeners if address[0] == host]:
            del self.listeners[address]
        if power:
            self._dark[host] = None
        for end in [end for end in self._ends if end.host == host]:
            end.vanish()
            self.send_reset(host, end.peer)

    def machine_back(self, host: str) -> None:
        """It has power again."""
        if self._dark.pop(host, self) is None:
            self._go_on()

    # --- for the ports

    async def listen(self, factory: Callable[[], asyncio.BaseProtocol], host: str, port: int) -> SimulatedListening:
        if port == 0:
            self._next_port += 1
            port = self._next_port
        if (host, port) in self.listeners:
            raise OSError(errno.EADDRINUSE, "address already in use")
        listening = self.listeners[host, port] = SimulatedListening(self, host, port, factory)
        return listening

    async def connect(
        self, source: str, factory: Callable[[], Any], host: str, port: int
    ) -> tuple[asyncio.BaseTransport, Any]:
        deadline_s = self.loop.time() + _CONNECT_TIMEOUT_S
        await self._cross(source, host, deadline_s)
        listening = self.listeners.get((host, port))
        if listening is None:
            await self._cross(host, source, deadline_s)
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens on {host}:{port}")
        self._next_port += 1
        self._connections += 1
        local = (source, self._next_port)
        number = self._connections
        client = SimulatedTransport(self, source, local, (host, port), number)
        server = SimulatedTransport(self, host, (host, port), local, number)
        client.peer, server.peer = server, client
        self._ends[client] = self._ends[server] = None
        self.note(host, f"connection {number} from {source} to {port}")
        listening.accept(server)
        try:
            await self._cross(host, source, deadline_s)
        except BaseException:
            client.vanish()
            self.send_reset(source, server)
            raise
        if client.lost:
            raise ConnectionResetError(errno.ECONNRESET, f"{host}:{port} reset the connection")
        protocol = factory()
        client.attach(protocol)
        return client, protocol

    async def _cross(self, source: str, target: str, deadline_s: float) -> None:
        """What a handshake's packet takes; it is sent again until it gets through or time is up."""
        await asyncio.sleep(self.delay_s(source, target))
        while self.is_blocked(source, target):
            if self.loop.time() >= deadline_s:
                raise TimeoutError(errno.ETIMEDOUT, f"{source} cannot reach {target}")
            await asyncio.sleep(0.25)


def _links(sources: Iterable[str], targets: Iterable[str]) -> list[Link]:
    """From each to each; a name alone would otherwise be a list of its letters."""
    ones, others = ([hosts] if isinstance(hosts, str) else list(hosts) for hosts in (sources, targets))
    return [(one, other) for one in ones for other in others if one != other]


class HostNetwork:
    """The network port of one machine."""

    def __init__(self, network: SimulatedNetwork, host: str) -> None:
        self.network = network
        self.host = host

    async def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,  # bytes in a simulation have nobody to hide from
    ) -> SimulatedListening:
        return await self.network.listen(factory, self.host if host in _EVERYWHERE else host, port)

    async def connect(
        self,
        factory: Callable[[], Any],
        host: str,
        port: int,
        *,
        ssl: SSLContext | None = None,
        forgets_unsent: bool = False,  # no kernel goes on behind a connection's back here
    ) -> tuple[asyncio.BaseTransport, Any]:
        return await self.network.connect(self.host, factory, host, port)

    def pulse(self, late_ms: int, hung_ms: int) -> NoPulse:
        """Under a virtual clock no loop is late."""
        return NoPulse()


class NoPulse:
    """Has nothing to do."""

    def beat(self, addresses: Sequence[tuple[str, int]], frame: bytes) -> None:
        """The loop sends its heartbeats itself."""

    def close(self) -> None:
        """There is nothing to close."""
