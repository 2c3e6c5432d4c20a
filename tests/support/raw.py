"""A blocking protocol client of few lines, for tests and benchmarks that must see and bend single frames.

It knows nothing of clusters, retries or time: what is sent is what the caller said. Headers are written here by hand;
bodies go through `millstream.protocol.codec`, which has its own tests against bytes captured from Apache Kafka.

    with RawClient("127.0.0.1", port) as client:
        answer = client.call(MetadataRequest(topics=None), 12)
        client.send(first, 9); client.send(second, 9)      # pipelined
        client.receive(); client.receive()                 # answers come in order, or this fails
"""

from __future__ import annotations

import socket
import struct
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, Self

from millstream.protocol.codec import decode, encode
from millstream.protocol.declare import declaration

if TYPE_CHECKING:
    from tests.support.running import RunningBroker

API_VERSIONS_KEY = 18


def response_of(request_kind: type) -> type:
    """The response that stands beside a request in its module."""
    found: type = getattr(
        sys.modules[request_kind.__module__], request_kind.__name__.removesuffix("Request") + "Response"
    )
    return found


def frame(message: Any, version: int, correlation_id: int, client_id: str = "raw") -> bytes:
    """A whole request: length, header, body."""
    declared = declaration(type(message))
    client = client_id.encode()
    header = struct.pack(">hhih", declared.api_key, version, correlation_id, len(client)) + client
    if version in declared.flexible:
        header += b"\0"
    body = encode(message, version)
    return struct.pack(">i", len(header) + len(body)) + header + body


class RawClient:
    """One connection."""

    def __init__(self, host: str, port: int, *, timeout_s: float = 60) -> None:
        self.address = (host, port)
        self.socket = socket.create_connection(self.address, timeout=timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._reader = self.socket.makefile("rb", buffering=1 << 20)
        self._next_correlation_id = 1
        self._waiting: deque[tuple[int, type, int]] = deque()

    @classmethod
    def of(cls, broker: RunningBroker, *, timeout_s: float = 60) -> Self:
        return cls("127.0.0.1", broker.port, timeout_s=timeout_s)

    def send_bytes(self, data: bytes | bytearray | memoryview) -> None:
        """Anything at all."""
        self.socket.sendall(data)

    def send(self, message: Any, version: int) -> int:
        """Send a request without waiting for its answer; its correlation id."""
        correlation_id = self._next_correlation_id
        self._next_correlation_id += 1
        self._waiting.append((correlation_id, type(message), version))
        self.send_bytes(frame(message, version, correlation_id))
        return correlation_id

    def receive_frame(self) -> bytes | None:
        """The next answer without its length, or None once the broker hung up."""
        try:
            head = self._reader.read(4)
            if len(head) < 4:
                return None
            (length,) = struct.unpack(">i", head)
            body = self._reader.read(length)
        except ConnectionError:
            return None
        return body if len(body) == length else None

    def receive(self) -> Any:
        """The answer to the oldest unanswered request."""
        correlation_id, request_kind, version = self._waiting.popleft()
        answer = self.receive_frame()
        if answer is None:
            raise ConnectionError(f"the broker hung up instead of answering {request_kind.__name__} v{version}")
        kind = response_of(request_kind)
        declared = declaration(kind)
        answered = struct.unpack_from(">i", answer)[0]
        assert answered == correlation_id, f"answers out of order: got {answered}, expected {correlation_id}"
        position = 4
        if version in declared.flexible and declared.api_key != API_VERSIONS_KEY:
            assert answer[4] == 0, "unexpected tagged fields in a response header"
            position = 5
        return decode(kind, version, answer, position)

    def call(self, message: Any, version: int) -> Any:
        """Send a request and wait for its answer."""
        assert not self._waiting, "other answers are outstanding"
        self.send(message, version)
        return self.receive()

    def hung_up(self, within_s: float = 30) -> bool:
        """Whether the broker closes the connection in time, whatever else it says before."""
        self.socket.settimeout(within_s)
        try:
            while self.receive_frame() is not None:
                pass
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        self._reader.close()
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
