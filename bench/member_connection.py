"""A connection of the load generator: one request at a time, many connections on one loop, no client library."""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any, cast

from tests.support.raw import response_of

from millstream.protocol.codec import decode
from millstream.protocol.declare import declaration
from millstream.protocol.frames import encode_request

if TYPE_CHECKING:
    from tests.support.running import RunningBroker


class MemberConnection(asyncio.Protocol):
    """Asks and waits; what it costs is the same for both contenders."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._correlation_id = 0

    @classmethod
    async def open(cls, broker: RunningBroker) -> MemberConnection:
        _, connection = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", broker.port)
        return connection

    async def call(self, request: Any, version: int) -> Any:
        """The broker's answer."""
        assert self._transport is not None
        assert self._answer is None, "one request at a time"
        self._correlation_id += 1
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(encode_request(request, version, self._correlation_id, "bench"))
        try:
            answer = await self._answer
        finally:
            self._answer = None
        kind = response_of(type(request))
        return decode(kind, version, answer, 5 if version in declaration(kind).flexible else 4)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) < 4:
            return
        (length,) = struct.unpack_from(">i", self._buffer)
        if len(self._buffer) >= 4 + length and self._answer is not None:
            answer = bytes(self._buffer[4 : 4 + length])
            del self._buffer[: 4 + length]
            self._answer.set_result(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"the broker hung up: {exc}"))
