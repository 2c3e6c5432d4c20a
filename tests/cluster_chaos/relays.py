"""Links as relays, for machines whose kernel gives no network namespaces: the second way of links.py.

All nodes live on loopback. What others are told of a listener is the address of a relay, which asks the kernel whose
process has called (/proc), and so knows which link a connection belongs to. What is sent over a link that is cut is
held, as TCP would send it again and again, and passed on when the link is healed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from tests.cluster_chaos.links import ARRIVES_WITHIN_S, CLIENTS, PROBE_WAIT_S, Listens
from tests.support.callers import inode_of, sockets_of
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Sequence
    from pathlib import Path

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 16
TOKEN_BYTES = 16


class Relays:
    """See the module's docstring."""

    name = "relays"

    def __init__(self, nodes: Iterable[int]) -> None:
        self._nodes = tuple(nodes)
        self._cuts: dict[tuple[int, int], None] = {}
        self._pids: dict[int, int] = {}
        self._known_callers: dict[int, int] = {}
        self._arrivals: dict[bytes, asyncio.Event] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="relays", daemon=True)
        self._thread.start()
        self._healed = asyncio.Event()
        places = (CLIENTS, *self._nodes)
        self._listeners = {
            (node, role): self._do(self._listen(node)) for node in places for role in ("broker", "controller", "probe")
        }
        for node in places:
            self._do(self._listen_to_probes(node))

    def broker_listener(self, node: int) -> Listens:
        return self._listeners[node, "broker"]

    def controller_listener(self, node: int) -> Listens:
        return self._listeners[node, "controller"]

    def launch(self, node: int, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(command, **options)
        self._pids[node] = process.pid
        return process

    def cut(self, senders: Iterable[int], receivers: Iterable[int]) -> None:
        receivers = list(receivers)
        for sender in senders:
            self._cuts |= {(sender, receiver): None for receiver in receivers if sender != receiver}

    def heal(self) -> None:
        self._cuts.clear()
        self._do(self._wake_all())

    def passes(self, sender: int, receiver: int) -> bool:
        token = os.urandom(TOKEN_BYTES)
        host, _, port = self._listeners[receiver, "probe"].told.rpartition(":")
        wait_s = PROBE_WAIT_S if (sender, receiver) in self._cuts else ARRIVES_WITHIN_S
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self._known_callers[probe.getsockname()[1]] = sender
            probe.connect((host, int(port)))
            probe.sendall(token)
            return self._do(self._arrives(token, wait_s))

    def own_disk(self, directory: Path) -> bool:
        directory.mkdir(parents=True, exist_ok=True)
        return False

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    # --- on the loop

    def _do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _listen(self, node: int) -> Listens:
        bound, told = free_ports(2)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                caller = self._caller(writer.get_extra_info("peername")[1], told)
                there, back = await asyncio.open_connection(HOST, bound)
                await asyncio.gather(self._pump(reader, back, caller, node), self._pump(there, writer, node, caller))
            writer.close()

        await asyncio.start_server(serve, HOST, told)
        return Listens(f"{HOST}:{bound}", f"{HOST}:{told}")

    async def _listen_to_probes(self, node: int) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                self._arrivals.setdefault(await reader.readexactly(TOKEN_BYTES), asyncio.Event()).set()
            writer.close()

        await asyncio.start_server(serve, HOST, int(self._listeners[node, "probe"].bound.rpartition(":")[2]))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sender: int, to: int) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._until_open(sender, to)
                writer.write(data)
                await writer.drain()
        await self._until_open(sender, to)
        writer.close()

    async def _until_open(self, sender: int, to: int) -> None:
        while (sender, to) in self._cuts:
            await self._healed.wait()

    async def _wake_all(self) -> None:
        self._healed.set()
        self._healed = asyncio.Event()

    async def _arrives(self, token: bytes, within_s: float) -> bool:
        arrival = self._arrivals.setdefault(token, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(arrival.wait(), within_s)
        return arrival.is_set()

    # --- who calls

    def _caller(self, port: int, dialled: int) -> int:
        """The node whose process has the other end of a connection from this port; everybody else is a client."""
        if port in self._known_callers:
            return self._known_callers.pop(port)
        inode = inode_of(port, dialled)
        for node, pid in self._pids.items():
            if inode is not None and inode in sockets_of(pid):
                return node
        return CLIENTS
