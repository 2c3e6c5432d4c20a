"""A heartbeat that survives a busy event loop: a thread that speaks up when the loop is late.

The loop sends its heartbeats itself and leaves a copy of each here. As long as the next one comes in time the thread
only looks at a clock. While the loop is late (a large request, a long collection of garbage, a disk that stalls it) the
thread repeats the copy on connections of its own: the broker lives, it is only busy. A loop that has been silent for
`hung_ms` will not come back; nothing is sent then, so that the cluster elects other leaders.

Every controller is told, not only the one that was active when the loop was last seen: another may have taken over
since, and those that are not active take no notice. Answers are not waited for. A controller that is stopped itself
must not keep this thread from telling the others.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    Address = tuple[str, int]

# A machine that does not answer a dial within this time has troubles of its own.
_DIAL_TIMEOUT_S = 0.3
_ANSWER_BYTES = 65_536


class _Message(NamedTuple):
    at_s: float
    addresses: tuple[Address, ...]
    frame: bytes


class RealPulse:
    """See the module's docstring. The thread starts with the first beat."""

    def __init__(self, late_ms: int, hung_ms: int) -> None:
        self._late_s = late_ms / 1000
        self._hung_s = hung_ms / 1000
        self._message: _Message | None = None
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._connections: dict[Address, socket.socket] = {}
        self.sent = 0
        self.failed = 0

    @property
    def is_silent(self) -> bool:
        """Whether the loop is taken for hung."""
        return self._message is not None and time.monotonic() - self._message.at_s >= self._hung_s

    def beat(self, addresses: Sequence[Address], frame: bytes) -> None:
        self._message = _Message(time.monotonic(), tuple(addresses), frame)
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
                for address in message.addresses:
                    self._send(address, message.frame)
        for address in list(self._connections):
            self._hang_up(address)

    def _send(self, address: Address, frame: bytes) -> None:
        try:
            self._connected(address).sendall(frame)
            self.sent += 1
        except OSError:
            # The next turn dials again; whether the controller hears it in time is not ours to say.
            self.failed += 1
            self._hang_up(address)

    def _connected(self, address: Address) -> socket.socket:
        """A connection from which the answers to earlier messages have been taken."""
        known = self._connections.get(address)
        if known is not None:
            try:
                if known.recv(_ANSWER_BYTES, socket.MSG_DONTWAIT):
                    return known
            except BlockingIOError:
                return known
            self._hang_up(address)
        dialled = self._connections[address] = socket.create_connection(address, timeout=_DIAL_TIMEOUT_S)
        return dialled

    def _hang_up(self, address: Address) -> None:
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.close()
