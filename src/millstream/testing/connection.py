"""One end of a simulated TCP connection: asyncio's transport on virtual time.

What was sent is under way until it arrives at the other machine's kernel; there it waits for its program, which may be
slow to read, stopped or dead. Bytes keep their order and are sometimes cut in two, so that nobody relies on one write
being one read.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
from collections import deque
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable

    from millstream.testing.network import SimulatedNetwork

_DEFAULT_HIGH_BYTES = 64 * 1024
_SOMEBODY_ELSES = b"\xee"
# The kernel's own work belongs to no program.
KERNEL = contextvars.Context()


class _End:
    """The other side has closed its end, in order behind what it has written."""


_END = _End()


class SimulatedTransport(asyncio.Transport):
    """One end of a connection, on the machine `host`."""

    def __init__(
        self, network: SimulatedNetwork, host: str, local: tuple[str, int], remote: tuple[str, int], number: int
    ) -> None:
        super().__init__({"peername": remote, "sockname": local})
        self.host = host
        self.number = number
        self.peer = cast("SimulatedTransport", None)
        self._network = network
        self._context = contextvars.copy_context()
        self._protocol: asyncio.BaseProtocol | None = None
        self._under_way: deque[bytes | _End] = deque()
        self._received: deque[bytes | _End] = deque()
        self._unread_bytes = 0
        self.held_back = 0
        self._last_arrival_s = 0.0
        self._reading = True
        self._handing_over = False
        self._closing = False
        self.lost = False
        self._high_bytes = _DEFAULT_HIGH_BYTES
        self._writer_paused = False

    def attach(self, protocol: asyncio.BaseProtocol) -> None:
        """The program has taken the connection."""
        self._context = contextvars.copy_context()
        self._protocol = protocol
        protocol.connection_made(self)
        self._offer()

    # --- asyncio's interface

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._protocol is not None
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
        self._offer()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high_bytes = _DEFAULT_HIGH_BYTES if high is None else high

    def get_write_buffer_size(self) -> int:
        return self.peer._unread_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or self.lost or not data:
            return
        data = bytes(data)
        random = self._network.random
        if len(data) > 1 and random.random() < 0.1:
            cut = random.randrange(1, len(data))
            self.peer.sent(data[:cut])
            data = data[cut:]
        self.peer.sent(data)
        if not self._writer_paused and self.get_write_buffer_size() > self._high_bytes:
            self._writer_paused = True
            self._protocol.pause_writing()  # type: ignore[union-attr]

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return False

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self.peer.sent(_END)
            self._network.loop.call_soon(self.lose, None)

    def abort(self) -> None:
        if not self.lost:
            self._closing = True
            self._network.loop.call_soon(self.lose, None)
            self._network.send_reset(self.host, self.peer)

    # --- what the network does

    def sent(self, data: bytes | _End) -> None:
        """Bytes (or the end) leave the peer: they arrive after a delay, never before what was sent earlier."""
        if self.lost:
            # Its kernel answers with a reset, if anything gets through at all.
            self._network.send_reset(self.host, self.peer)
            return
        self._under_way.append(data)
        if not isinstance(data, _End):
            self._unread_bytes += len(data)
        if self._network.has_blocked_links and self._network.is_blocked(self.peer.host, self.host):
            self.held_back += 1
        else:
            self._schedule_arrival()

    def go_on(self) -> None:
        """The link is healed: what it held back is sent again."""
        for _ in range(self.held_back):
            self._schedule_arrival()
        self.held_back = 0

    def _schedule_arrival(self) -> None:
        loop = self._network.loop
        self._last_arrival_s = max(self._last_arrival_s, self._network.arrival_s(self.peer.host, self.host))
        loop.call_at(self._last_arrival_s, self._arrives, context=KERNEL)

    def _arrives(self) -> None:
        if self.lost or not self._under_way:
            return
        data = self._under_way.popleft()
        if isinstance(data, _End):
            self._network.note(self.host, f"end of {self.number}")
        else:
            self._network.note(self.host, f"{len(data)} bytes of {self.number}, {crc32(data):08x}")
        self._received.append(data)
        self._offer()

    def _offer(self) -> None:
        if self._received and self._reading and self._protocol is not None and not self._handing_over:
            self._handing_over = True
            self._network.loop.call_soon(self._hand_over, context=self._context)

    def _hand_over(self) -> None:
        self._handing_over = False
        while self._received and self._reading and not self.lost:
            data = self._received.popleft()
            if isinstance(data, _End):
                self.lose(None)
                return
            self._unread_bytes -= len(data)
            self._give(data)
        if self.peer._writer_paused:
            self.peer.drained()

    def drained(self) -> None:
        """The other side has read: a writer that waits for room may go on."""
        if self._writer_paused and not self.lost and self.get_write_buffer_size() <= self._high_bytes // 4:
            self._writer_paused = False
            assert self._protocol is not None
            self._network.loop.call_soon(self._protocol.resume_writing, context=self._context)

    def _give(self, data: bytes) -> None:
        protocol = self._protocol
        if not isinstance(protocol, asyncio.BufferedProtocol):
            cast("asyncio.Protocol", protocol).data_received(data)
            return
        rest = data
        while rest and not self.lost:
            buffer = cast("bytearray", protocol.get_buffer(-1))
            count = len(rest)
            if count > len(buffer):
                count = len(buffer)
                buffer[:count] = rest[:count]
            else:
                buffer[:count] = rest
            protocol.buffer_updated(count)
            self._use_its_memory(protocol, count)
            rest = rest[count:]
            if rest and not self._reading:
                self._received.appendleft(rest)
                self._unread_bytes += len(rest)
                return

    def _use_its_memory(self, protocol: asyncio.BufferedProtocol, count: int) -> None:
        """What a program offers to read into, it shares among its connections: by the time it looks again, another may
        have been read into the same place."""
        if not self._closing:
            free = memoryview(cast("bytearray", protocol.get_buffer(-1)))
            count = min(count, len(free))
            free[:count] = _SOMEBODY_ELSES * count

    def lose(self, error: Exception | None) -> None:
        """The connection is gone for this end."""
        if self.lost:
            return
        self.lost = self._closing = True
        self._network.forget(self)
        if self._protocol is not None:
            self._protocol.connection_lost(error)

    def broken(self) -> None:
        """A reset has come: the program hears of it when it runs again."""
        if not self.lost:
            self._network.note(self.host, f"reset of {self.number}")
            error = ConnectionResetError(errno.ECONNRESET, "the connection was reset")
            self._network.loop.call_soon(self.lose, error, context=self._context)

    def vanish(self) -> None:
        """This end's program is gone: nobody here is told."""
        self.lost = self._closing = True
        self._network.forget(self)
