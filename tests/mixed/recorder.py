"""A wire tap: relays in front of listeners, which pass on every byte and keep every request with its answer.

    with Recorder() as recorder:
        told = recorder.tap("controller 1", "127.0.0.1:9093")   # what others are told; the node itself listens at 9093
        ...
        recorder.exchanges

Frames are cut by their length alone, so that what neither of us knows is kept as well. Answers are matched with their
requests by correlation id. Whose question it is follows from the process that holds the other end of the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from millstream.protocol.apis import API_NAMES, api
from millstream.protocol.codec import decode
from millstream.protocol.errors import MalformedMessage
from millstream.protocol.frames import decode_request_header, decode_response
from tests.support.callers import inode_of, sockets_of
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from collections.abc import Callable

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 16
SOMEBODY = "somebody"


@dataclass
class Exchange:
    """One request and its answer, both without their length."""

    asker: str
    asked: str
    request: bytes
    response: bytes | None = None

    @property
    def api_key(self) -> int:
        return int(struct.unpack_from(">h", self.request)[0])

    @property
    def version(self) -> int:
        return int(struct.unpack_from(">h", self.request, 2)[0])

    @property
    def correlation_id(self) -> int:
        return int(struct.unpack_from(">i", self.request, 4)[0])

    @property
    def api(self) -> str:
        return API_NAMES.get(self.api_key, str(self.api_key))

    def question(self) -> Any:
        """The request, decoded."""
        api_key, version, _, _, position = decode_request_header(self.request)
        return decode(api(api_key).request, version, self.request, position)

    def answer(self) -> Any:
        """The answer, decoded; None where there was none."""
        if self.response is None:
            return None
        try:
            return decode_response(self.api_key, self.version, self.response)[1]
        except MalformedMessage:
            if self.api != "ApiVersions":
                raise
            # Whoever does not know the version that was asked for answers in version 0.
            return decode_response(self.api_key, 0, self.response)[1]


@dataclass(frozen=True)
class _Listener:
    name: str
    bound: int
    told: int


@dataclass
class Recorder:
    """See the module's docstring. `pids` says whose process is whose; others are somebody."""

    exchanges: list[Exchange] = field(default_factory=list)
    pids: dict[str, Callable[[], int | None]] = field(default_factory=dict)
    _servers: list[asyncio.Server] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recorder", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)
        self._loop.close()

    async def _end(self) -> None:
        """Cancel whatever still waits for bytes: nodes are killed while they talk."""
        for server in self._servers:
            server.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        # Closed connections take another turn to let go of their sockets.
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def tap(self, name: str, address: str) -> str:
        """Listen on a port of its own for the listener `name` at this address; where others should go."""
        (told,) = free_ports(1)
        listener = _Listener(name, int(address.rpartition(":")[2]), told)
        asyncio.run_coroutine_threadsafe(self._listen(listener), self._loop).result(30)
        return f"{HOST}:{told}"

    def of(self, api_name: str, *, asker: str | None = None, asked: str | None = None) -> list[Exchange]:
        """The exchanges of an API so far that were answered, oldest first."""
        return [
            each
            for each in list(self.exchanges)
            if each.api == api_name
            and each.response is not None
            and asker in (None, each.asker)
            and (asked is None or each.asked.endswith(asked))
        ]

    # --- on the loop

    async def _listen(self, listener: _Listener) -> None:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            back: asyncio.StreamWriter | None = None
            # Nobody may listen there, and we may be stopped while bytes are under way.
            with contextlib.suppress(OSError, asyncio.CancelledError):
                asker = self._asker(writer.get_extra_info("peername")[1], listener.told)
                there, back = await asyncio.open_connection(HOST, listener.bound)
                waiting: dict[int, Exchange] = {}

                def note_request(frame: bytes) -> None:
                    exchange = Exchange(asker, listener.name, frame)
                    waiting[exchange.correlation_id] = exchange
                    self.exchanges.append(exchange)

                def note_response(frame: bytes) -> None:
                    asked = waiting.pop(struct.unpack_from(">i", frame)[0], None)
                    if asked is not None:
                        asked.response = frame

                await asyncio.gather(_pump(reader, back, note_request), _pump(there, writer, note_response))
            for end in (writer, back):
                if end is not None:
                    end.close()

        self._servers.append(await asyncio.start_server(serve, HOST, listener.told))

    def _asker(self, port: int, dialled: int) -> str:
        inode = inode_of(port, dialled)
        for name, pid_of in self.pids.items():
            pid = pid_of()
            if inode is not None and pid is not None and inode in sockets_of(pid):
                return name
        return SOMEBODY


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, note: Callable[[bytes], None]) -> None:
    """Pass frames on until the one end hangs up, then hang up at the other."""
    # Either end may die at any moment.
    with contextlib.suppress(OSError, asyncio.IncompleteReadError):
        while True:
            length = await reader.readexactly(4)
            frame = await reader.readexactly(struct.unpack(">i", length)[0])
            note(frame)
            writer.write(length + frame)
            await writer.drain()
    writer.close()
