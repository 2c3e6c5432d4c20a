"""A heartbeat that survives a busy event loop: a thread that speaks up when the loop is late.

The loop sends its heartbeats itself and leaves a copy of each here. As long as the next one comes in time the thread
only looks at a clock. While the loop is late (a large request, a long collection of garbage, a disk that stalls it) the
thread repeats the copy on a connection of its own: the broker lives, it is only busy. A loop that has been silent for
`hung_ms` will not come back; nothing is sent then, so that the cluster elects other leaders.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import NamedTuple

# A peer that does not take or answer a few bytes within this time has troubles of its own.
_SOCKET_TIMEOUT_S = 1.0


class _Message(NamedTuple):
    at_s: float
    host: str
    port: int
    frame: bytes


class RealPulse:
    """See the module's docstring. The thread starts with the first beat."""

    def __init__(self, late_ms: int, hung_ms: int) -> None:
        self._late_s = late_ms / 1000
        self._hung_s = hung_ms / 1000
        self._message: _Message | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._socket: socket.socket | None = None
        self._dialled: tuple[str, int] | None = None
        self.sent = 0
        self.failed = 0

    @property
    def is_silent(self) -> bool:
        """Whether the loop is taken for hung."""
        return self._message is not None and time.monotonic() - self._message.at_s >= self._hung_s

    def beat(self, host: str, port: int, frame: bytes) -> None:
        self._message = _Message(time.monotonic(), host, port, frame)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="millstream-pulse", daemon=True)
            self._thread.start()

    def close(self) -> None:
        # The thread ends by itself; the loop does not wait for its last message.
        self._closing.set()

    def _run(self) -> None:
        while not self._closing.wait(self._late_s / 2):
            message = self._message
            if message is not None and self._late_s < time.monotonic() - message.at_s < self._hung_s:
                self._send(message)
        self._hang_up()

    def _send(self, message: _Message) -> None:
        try:
            connection = self._connected(message.host, message.port)
            connection.sendall(message.frame)
            length = int.from_bytes(_read(connection, 4), "big")
            _read(connection, length)
            self.sent += 1
        except OSError:
            # The next turn dials again; whether the controller hears it in time is not ours to say.
            self.failed += 1
            self._hang_up()

    def _connected(self, host: str, port: int) -> socket.socket:
        if self._socket is None or self._dialled != (host, port):
            self._hang_up()
            self._socket = socket.create_connection((host, port), timeout=_SOCKET_TIMEOUT_S)
            self._dialled = (host, port)
        return self._socket

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _read(connection: socket.socket, length: int) -> bytes:
    received = b""
    while len(received) < length:
        piece = connection.recv(min(length - len(received), 65_536))
        if not piece:
            raise ConnectionError("the peer hung up")
        received += piece
    return received
