"""The connections to a cluster: who is there, and a way to each.

The first connection is a race over the bootstrap list: the next address starts when the one before has failed, or has
not answered for a moment. So a dead first server costs a quarter of a second at the most, and a refused one nothing.
When every broker that metadata named is gone, the same race runs again over those and the bootstrap list.

Long polls get a connection of their own (`lane`), because answers come in order: a small request behind a fetch that
waits for data would wait as long.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from millstream.client.errors import ClientError, NeverReached, Unreachable
from millstream.client.handshake import open_connection

if TYPE_CHECKING:
    from collections.abc import Iterable
    from ssl import SSLContext

    from millstream.client.connection import Connection
    from millstream.client.options import Address, Options
    from millstream.client.ports import ClientPorts

HEAD_START_S = 0.25
Lane = Literal["calls", "polls"]


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker as metadata names it."""

    id: int
    address: Address
    rack: str | None = None


class Nodes:
    """All connections of one client."""

    def __init__(self, options: Options, ports: ClientPorts) -> None:
        self.brokers: dict[int, Broker] = {}
        # Somebody has reached the cluster under this address before: that nobody answers will pass.
        self.expected = False
        self._options = options
        self._ports = ports
        self._context: SSLContext | None = None
        self._open: dict[tuple[Address, Lane], Connection] = {}
        self._opening: dict[tuple[Address, Lane], asyncio.Task[Connection]] = {}
        self._racing: asyncio.Task[Connection] | None = None

    def learn(self, brokers: Iterable[Broker]) -> None:
        """Take the brokers of fresh metadata; connections to others stay until they end by themselves."""
        self.brokers = {broker.id: broker for broker in brokers}

    async def to(self, node_id: int, lane: Lane = "calls") -> Connection:
        """A connection to this broker."""
        broker = self.brokers.get(node_id)
        if broker is None:
            raise Unreachable(f"the cluster has no broker {node_id}")
        return await self._connect(broker.address, lane)

    async def to_any(self) -> Connection:
        """The least busy open connection, or the winner of the race."""
        usable = [connection for (_, lane), connection in self._open.items() if lane == "calls" and connection.usable]
        if usable:
            return min(usable, key=lambda connection: connection.in_flight)
        if self._racing is None:
            self._racing = asyncio.create_task(self._race())
            self._racing.add_done_callback(self._race_ended)
        return await asyncio.shield(self._racing)

    async def close(self) -> None:
        opening = [*self._opening.values(), *([self._racing] if self._racing is not None else [])]
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        for connection in self._open.values():
            connection.abort()
        self._open.clear()
        # One turn of the loop, so that the transports can let go of their sockets.
        await asyncio.sleep(0)

    async def _connect(self, address: Address, lane: Lane) -> Connection:
        place = (address, lane)
        connection = self._open.get(place)
        if connection is not None and connection.usable:
            return connection
        task = self._opening.get(place)
        if task is None:
            task = asyncio.create_task(self._dial(place))
            self._opening[place] = task
            task.add_done_callback(lambda done: self._dialled(place, done))
        return await asyncio.shield(task)

    async def _dial(self, place: tuple[Address, Lane]) -> Connection:
        connection = await open_connection(place[0], self._options, self._tls(), self._ports)
        self._open[place] = connection
        return connection

    def _dialled(self, place: tuple[Address, Lane], task: asyncio.Task[Connection]) -> None:
        self._opening.pop(place, None)
        if not task.cancelled():
            task.exception()  # Whoever waits has heard of it; nobody may wait any more.

    def _race_ended(self, task: asyncio.Task[Connection]) -> None:
        self._racing = None
        if not task.cancelled():
            task.exception()

    async def _race(self) -> Connection:
        """The first address that completes the handshake wins; the others are given up."""
        addresses = list(dict.fromkeys([*self._options.bootstrap, *(b.address for b in self.brokers.values())]))
        running: list[asyncio.Task[Connection]] = []
        failures: list[ClientError] = []
        try:
            while addresses or running:
                if addresses:
                    running.append(asyncio.create_task(self._dial((addresses.pop(0), "calls"))))
                await asyncio.wait(
                    running,
                    timeout=HEAD_START_S if addresses else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                # In the order of the list, not of the sets that `wait` returns: the simulator must repeat itself.
                done = [task for task in running if task.done()]
                running = [task for task in running if not task.done()]
                for task in done:
                    try:
                        return task.result()
                    except ClientError as error:
                        failures.append(error)
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
        raise _summary(failures, known=self.expected or bool(self.brokers))

    def _tls(self) -> SSLContext | None:
        if self._options.tls is not None and self._context is None:
            from millstream.client.tls import client_context

            self._context = client_context(self._options.tls)
        return self._context


def _summary(failures: list[ClientError], *, known: bool) -> ClientError:
    """One sentence for all of them; a wrong password is worth more than a dead neighbour."""
    final = [failure for failure in failures if not failure.retriable]
    if final:
        return final[0]
    reasons = "; ".join(str(failure) for failure in failures)
    return (Unreachable if known else NeverReached)(reasons if len(failures) == 1 else f"no broker answers: {reasons}")
