"""One connection to a broker: frames out, frames in, in order.

Requests are pipelined: each gets a correlation id and a place in a queue, and Kafka answers in the order of the
queue. Large responses are read straight into a buffer of their own size, which the decoded message may keep views
into, so whole record batches reach the caller without a copy.

A request that times out ends the connection: the answers behind it would come too late as well, and nobody knows
whether the peer still lives. A caller that is cancelled leaves its place in the queue, and the late answer is dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from millstream.client.errors import ConnectionLost, NotSupported, ProtocolViolation, TimedOut
from millstream.protocol import apis, codec, frames
from millstream.protocol.answer_reader import AnswerReader, BadFrame
from millstream.protocol.declare import declaration
from millstream.protocol.errors import MalformedMessage

if TYPE_CHECKING:
    from millstream.client.options import Address

Answer = asyncio.Future[bytearray]


class Connection(asyncio.BufferedProtocol):
    """An open connection; `versions` is what the broker speaks, once negotiated."""

    def __init__(self, address: Address, client_id: str, response_bytes_max: int) -> None:
        self.address = address
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: dict[str, int] = {}
        # When the login ends (loop time); a connection past it is replaced, not used.
        self.expires_at_s: float | None = None
        self.closed = False
        self._client_id = client_id
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._waiting: deque[tuple[int, Answer]] = deque()
        self._correlation_id = 0
        self._throttled_until_s = 0.0
        self._writable: asyncio.Future[None] | None = None
        self._reason: Exception | None = None
        self._reader = AnswerReader(response_bytes_max)

    # What callers use.

    @property
    def in_flight(self) -> int:
        return len(self._waiting)

    @property
    def usable(self) -> bool:
        return not self.closed and (self.expires_at_s is None or self._loop.time() < self.expires_at_s)

    def pick_version(self, kind: type, *, at_least: int = 0, at_most: int = 32767) -> int:
        """The highest version that the broker, this client and the caller agree on."""
        declared = declaration(kind)
        assert declared.api_key is not None
        name = kind.__name__.removesuffix("Request")
        offered = self.versions.get(declared.api_key)
        if offered is None:
            raise NotSupported(f"the broker at {self.address} does not know {name} requests")
        highest = declared.unstable.first - 1 if declared.unstable.last >= 0 else declared.versions.last
        version = min(offered[1], highest, at_most)
        if version < max(offered[0], declared.versions.first, at_least):
            raise NotSupported(
                f"the broker at {self.address} speaks {name} {offered[0]} to {offered[1]}, "
                f"this client needs {max(declared.versions.first, at_least)} to {min(highest, at_most)}"
            )
        return version

    async def call(self, request: object, version: int, *, timeout_ms: int) -> Any:
        """Send a request and wait for its decoded answer."""
        if self._throttled_until_s > self._loop.time():
            await asyncio.sleep(self._throttled_until_s - self._loop.time())
        response = self.decode_response(type(request), version, await self.exchange(request, version, timeout_ms))
        throttle_ms: int = getattr(response, "throttle_time_ms", 0)
        if throttle_ms > 0:
            self._throttled_until_s = self._loop.time() + throttle_ms / 1000
        return response

    async def exchange(self, request: object, version: int, timeout_ms: int) -> bytearray:
        """Send a request and wait for the bytes of its answer, header included."""
        answer: Answer = self._loop.create_future()
        self._write(request, version, answer)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                if self._writable is not None:
                    await asyncio.shield(self._writable)
                return await answer
        except TimeoutError:
            raise self._given_up(request, "answer", timeout_ms) from None

    async def send(self, request: object, version: int, *, timeout_ms: int) -> None:
        """Send a request that has no answer (Produce with acks=0); a peer that takes nothing in is given up."""
        self._write(request, version, None)
        if self._writable is None:
            return
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await asyncio.shield(self._writable)
        except TimeoutError:
            raise self._given_up(request, "take in", timeout_ms) from None

    def decode_response(self, kind: type, version: int, frame: bytearray) -> Any:
        api_key = declaration(kind).api_key
        assert api_key is not None
        try:
            position = frames.response_header_length(api_key, version, frame)
            return codec.decode(apis.response_class(api_key), version, frame, position)
        except MalformedMessage as error:
            broken = ProtocolViolation(f"the broker at {self.address} sent an answer that makes no sense: {error}")
            self.abort(broken)
            raise broken from error

    def abort(self, reason: Exception | None = None) -> None:
        """Close at once; whoever waits for an answer gets the reason."""
        if self._reason is None:
            self._reason = reason
        if self._transport is not None:
            self._transport.abort()
        self._fail_waiting()

    def _write(self, request: object, version: int, answer: Answer | None) -> None:
        if self.closed or self._transport is None:
            raise self._lost()
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        pieces = frames.encode_request_pieces(request, version, self._correlation_id, self._client_id)
        if answer is not None:
            self._waiting.append((self._correlation_id, answer))
        # Record batches go to the transport as they are: nobody may change them before the answer has come.
        if len(pieces) == 1:
            self._transport.write(pieces[0])
        else:
            self._transport.writelines(pieces)

    def _given_up(self, request: object, what: str, timeout_ms: int) -> TimedOut:
        name = type(request).__name__.removesuffix("Request")
        late = TimedOut(f"the broker at {self.address} did not {what} {name} within {timeout_ms} ms")
        self.abort(late)
        return late

    def _lost(self) -> Exception:
        if isinstance(self._reason, ProtocolViolation):
            return self._reason
        why = f": {self._reason}" if self._reason is not None else ""
        return ConnectionLost(f"the connection to {self.address} was lost{why}")

    def _fail_waiting(self) -> None:
        self.closed = True
        waiting, self._waiting = self._waiting, deque()
        for _, answer in waiting:
            if not answer.done():
                answer.set_exception(self._lost())
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
            self._writable = None

    # What the transport calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a stream transport, as asked for

    def connection_lost(self, exc: Exception | None) -> None:
        if self._reason is None:
            self._reason = exc
        self._fail_waiting()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.space()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            answers = self._reader.received(nbytes)
        except BadFrame as bad:
            self.abort(
                ProtocolViolation(
                    f"the peer at {self.address} announced a frame of {bad.length} bytes: "
                    "is it a Kafka broker, and is security.protocol right?"
                )
            )
            return
        for frame in answers:
            self._deliver(frame)

    def _deliver(self, frame: bytearray) -> None:
        if self.closed:
            return
        correlation_id = int.from_bytes(frame[:4], "big", signed=True)
        if not self._waiting or self._waiting[0][0] != correlation_id:
            self.abort(ProtocolViolation(f"the broker at {self.address} answered a question that was not asked"))
            return
        _, answer = self._waiting.popleft()
        if not answer.done():
            answer.set_result(frame)
