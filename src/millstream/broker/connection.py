"""One client's connection: frames in, answers out, in the order of the requests.

The hot path has no task and no future: a request is decoded, handled and answered inside the loop's read callback.
A handler that must wait returns a `Deferred`; its place in the queue of answers is kept, and later requests go on.
A coroutine handler holds back the connection's next requests until it has finished, as Kafka does for every request.

Nothing here trusts the peer. Bytes that make no sense cost it the connection; a peer that does not read its answers is
no longer read from; one that is silent for `connections.max.idle.ms` is let go.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from struct import Struct
from typing import TYPE_CHECKING, Any, cast

from millstream.broker.dispatch import Context, Deferred
from millstream.broker.forwarding import Passed, forward
from millstream.broker.requests import Call, UnservedRequest
from millstream.broker.sending import Sender
from millstream.log.reading import Stretch
from millstream.protocol.errors import BrokerError, MalformedMessage
from millstream.protocol.frame_reader import FrameReader
from millstream.runtime.logs import Logger

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from millstream.broker.listeners import Listener
    from millstream.protocol.varint import Buffer

_LENGTH_AND_CORRELATION = Struct(">ii")
_FLUSH_BYTES = 256 * 1024
_log = Logger("millstream.connection")


class _Answer:
    """A place in the queue of answers."""

    __slots__ = ("call", "correlation_id", "deferred", "request_bytes", "response")

    def __init__(self, call: Call, correlation_id: int, request_bytes: int) -> None:
        self.call = call
        self.correlation_id = correlation_id
        self.request_bytes = request_bytes
        self.deferred: Deferred | None = None
        self.response: Any = None


class Connection(asyncio.BufferedProtocol):
    """The server's end of one client's connection."""

    __slots__ = (
        "_answers", "_closing", "_out", "_out_bytes", "_out_has_stretches", "_owned_bytes", "_paused", "_queued_bytes",
        "_reader", "_resting", "_sender", "_serving", "_task", "_writable", "broker", "last_heard_ms", "listener",
        "local_address", "peer_host", "principal", "transport", "when_lost",
    )  # fmt: skip

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.broker = listener.broker
        self.principal = "User:ANONYMOUS"
        self.peer_host = ""
        self.local_address = ("", 0)
        self.last_heard_ms = 0
        # Told once, when the connection is no more.
        self.when_lost: Callable[[], None] | None = None
        self._reader = FrameReader(listener.scratch, listener.frame_bytes_max)
        self._answers: deque[_Answer] = deque()
        # Bytes of requests that wait for their answer, of answers that wait to be written, of the receive buffer.
        self._queued_bytes = 0
        self._out_bytes = 0
        self._owned_bytes = 0
        self._out: list[Buffer] = []
        self._out_has_stretches = False
        self._task: asyncio.Task[None] | None = None
        self._paused = False
        self._writable = True
        self._serving = False
        self._resting = False
        self._closing = False
        self.transport = cast("asyncio.Transport", None)
        self._sender = cast("Sender", None)

    # --- asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        local = transport.get_extra_info("sockname")
        self.peer_host = str(peer[0]) if isinstance(peer, tuple) else ""
        self.local_address = (str(local[0]), int(local[1])) if isinstance(local, tuple) else ("", 0)
        self.last_heard_ms = self.broker.ports.clock.monotonic_ms()
        self._sender = Sender(self.transport, self.listener.unsent_bytes_max)
        if not self.listener.admit(self):
            self._closing = True
            self.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self.broker.connection_limits.received_bytes -= self._owned_bytes
        self.listener.forget(self)
        if self._task is not None:
            self._task.cancel()
        for answer in self._answers:
            if answer.deferred is not None:
                answer.deferred.abandon()
        self._answers.clear()
        self._sender.abandon()
        if self.when_lost is not None:
            self.when_lost()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.space()

    def buffer_updated(self, nbytes: int) -> None:
        self._reader.received(nbytes)
        self.serve()
        # Here and not in `serve`, which the answer to another connection may call: in the middle of a handler whose own
        # poll is not there yet to be woken.
        self.broker.wakeups.wake_now()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._writable = False
        if self.transport.get_write_buffer_size() > self.listener.unsent_bytes_max:
            self.listener.check_unsent()

    def resume_writing(self) -> None:
        try:
            self._sender.go_on()
        except OSError as error:
            self.give_up(str(error))
        if not self._sender.is_behind:
            self._writable = True
            self.serve()

    # --- serving

    def serve(self) -> None:
        """Handle every whole frame that has arrived, unless something makes this connection wait."""
        if self._closing or self._serving:
            return
        self._serving = True
        reader = self._reader
        self.last_heard_ms = self.broker.ports.clock.monotonic_ms()
        try:
            while not self._must_wait():
                frame = reader.next_frame()
                if frame is None:
                    break
                self._handle(frame)
                if not reader.pending_bytes:
                    break
                if self._out_bytes > _FLUSH_BYTES:
                    # Now and not at the end, or a pipeline of large fetches would pile up before anybody is asked
                    # whether the peer reads at all.
                    self._flush()
            reader.settle()
            self._account_for_buffer()
        except (MalformedMessage, UnservedRequest) as refusal:
            self.cut_off(str(refusal))
            return
        finally:
            self._serving = False
        self._flush()
        self._pause_or_resume()

    def _must_wait(self) -> bool:
        return (
            self._task is not None
            or not self._writable
            or self._sender.is_behind
            or self._resting
            or self._closing
            or not self.listener.is_serving
            or self._queued_bytes > self.listener.queued_bytes_max
            or len(self._answers) >= self.listener.unsent_answers_max
        )

    def _account_for_buffer(self) -> None:
        """`queued.max.request.bytes`: whoever makes all receive buffers together exceed it is let go."""
        owned = self._reader.owned_bytes
        if owned == self._owned_bytes:
            return
        limits = self.broker.connection_limits
        limits.received_bytes += owned - self._owned_bytes
        grown = owned > self._owned_bytes
        self._owned_bytes = owned
        if grown and 0 < limits.received_bytes_max < limits.received_bytes:
            raise UnservedRequest(f"all receive buffers together exceed {limits.received_bytes_max} bytes")

    def _pause_or_resume(self) -> None:
        must_pause = self._must_wait()
        if must_pause != self._paused and not self._closing:
            self._paused = must_pause
            if must_pause:
                self.transport.pause_reading()
            else:
                self.transport.resume_reading()

    def _handle(self, frame: memoryview) -> None:
        call, correlation_id, client_id, position = self.listener.calls.find(frame)
        self.broker.metrics.requests += 1
        if call.handling.forwards and not self.listener.is_controller and not self.broker.controller.is_active:
            ctx = Context(self.broker, self, call.handling.api_key, call.version, client_id)
            self._run(_Answer(call, correlation_id, len(frame)), forward(bytes(frame), call, position, ctx))
            return
        # Bytes behind the request are left alone, as Kafka does: librdkafka sends some after Metadata.
        request, _ = call.decode(frame, position)
        ctx = Context(self.broker, self, call.handling.api_key, call.version, client_id)
        try:
            outcome = call.handling.call(request, ctx)
        except BrokerError as refusal:
            # Handlers answer refusals in the response; one that gets here has no place in it.
            raise UnservedRequest(f"{call.handling.name}: {refusal}") from refusal
        except Exception as error:  # noqa: BLE001  # a bug of ours costs this connection, not the broker
            self._blame_ourselves(call, error)
            return
        if outcome is None:
            return
        if type(outcome) is Deferred:
            if not outcome.done:
                self._wait_for(_Answer(call, correlation_id, len(frame)), outcome)
                return
            outcome = outcome.response
        elif inspect.iscoroutine(outcome):
            self._run(_Answer(call, correlation_id, len(frame)), outcome)
            return
        if self._answers:
            answer = _Answer(call, correlation_id, len(frame))
            self._queued_bytes += answer.request_bytes
            answer.response = outcome
            self._answers.append(answer)
        else:
            self._try_to_send(call, correlation_id, outcome)

    def _wait_for(self, answer: _Answer, deferred: Deferred) -> None:
        answer.deferred = deferred
        self._answers.append(answer)
        self._queued_bytes += answer.request_bytes
        deferred.when_done(self._answer_came)

    def _answer_came(self) -> None:
        self._send_ready()
        self._flush()
        if self._paused:
            self.serve()

    def _send_ready(self) -> None:
        answers = self._answers
        while answers:
            answer = answers[0]
            if answer.deferred is not None:
                if not answer.deferred.done:
                    return
                answer.response = answer.deferred.response
            elif answer.response is None:
                return
            answers.popleft()
            self._queued_bytes -= answer.request_bytes
            if answer.response is not None:
                self._try_to_send(answer.call, answer.correlation_id, answer.response)

    def _run(self, answer: _Answer, coroutine: Coroutine[Any, Any, Any]) -> None:
        call = answer.call
        self._answers.append(answer)
        self._queued_bytes += answer.request_bytes

        async def finish() -> None:
            try:
                answer.response = await coroutine
            except BrokerError as refusal:
                self._task = None
                self.cut_off(f"{call.handling.name}: {refusal}")
                return
            except Exception as error:  # noqa: BLE001  # as in _handle
                self._task = None
                self._blame_ourselves(call, error)
                return
            self._task = None
            if answer.response is None:
                # Nothing is answered (acks=0): those behind it must not wait for that.
                self._answers.remove(answer)
                self._queued_bytes -= answer.request_bytes
            self._send_ready()
            self.serve()

        self._task = asyncio.get_running_loop().create_task(finish())

    def _try_to_send(self, call: Call, correlation_id: int, response: Any) -> None:
        try:
            self._send(call, correlation_id, response)
        except Exception as error:  # noqa: BLE001  # as in _handle
            self._blame_ourselves(call, error)

    def _send(self, call: Call, correlation_id: int, response: Any) -> None:
        throttle_ms = self.broker.quotas.throttle_ms(self.principal, call.handling.api_key)
        if throttle_ms > 0 and hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
            self._rest(throttle_ms)
        if type(response) is Passed:
            self._out += (len(response.frame).to_bytes(4, "big"), response.frame)
            self._out_bytes += len(response.frame)
            return
        out = bytearray(9 if call.tagged_response_header else 8)
        pieces = call.encode(response, out)
        length = len(out) - 4
        if pieces is None:
            self._out.append(out)
        else:
            # Record batches are not copied into the answer: they follow as pieces of their own.
            for piece in pieces[1:]:
                length += len(piece)
                if type(piece) is Stretch:
                    self._out_has_stretches = True
            self._out += pieces
        _LENGTH_AND_CORRELATION.pack_into(out, 0, length, correlation_id)
        self._out_bytes += length

    def _rest(self, throttle_ms: int) -> None:
        """A client over its quota is not read from for as long as it was told to wait."""
        self._resting = True

        def wake() -> None:
            self._resting = False
            self.serve()

        self.broker.loop.call_later(throttle_ms / 1000, wake)

    def _flush(self) -> None:
        out = self._out
        if out and not self._closing:
            self._out = []
            self._out_bytes = 0
            with_stretches, self._out_has_stretches = self._out_has_stretches, False
            try:
                self._sender.send(out, with_stretches=with_stretches)
            except OSError as error:
                self.give_up(str(error))

    # --- endings

    def _blame_ourselves(self, call: Call, error: Exception) -> None:
        _log.error("a handler failed", api=call.handling.name, version=call.version, exc_info=error)
        self.broker.metrics.failed_handlers += 1
        self.cut_off(f"{call.handling.name} failed inside the broker")

    def cut_off(self, why: str) -> None:
        if not self._closing:
            self._flush()
            _log.info("connection closed by the broker", peer=self.peer_host, listener=self.listener.name, why=why)
            self.broker.metrics.connections_cut_off += 1
            self.close()

    def give_up(self, why: str) -> None:
        """Let go of the peer at once; what it has not read is lost."""
        if not self._closing:
            self._closing = True
            _log.warning("connection given up", peer=self.peer_host, listener=self.listener.name, why=why)
            self.broker.metrics.connections_cut_off += 1
            self.transport.abort()

    def close(self) -> None:
        """Let go of the peer; what was written before still goes out."""
        if not self._closing:
            self._closing = True
            self.transport.close()

    def release_idle_buffer(self) -> None:
        self._reader.release_idle()
        self._account_for_buffer()
