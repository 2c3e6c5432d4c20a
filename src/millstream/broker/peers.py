"""How this node talks to other nodes: brokers to controllers, controllers to each other, followers to leaders.

    answer = await node.peers.at(host, port).ask(VoteRequest(...), version=2, timeout_ms=1000)

One connection per address and purpose, dialled when the first question comes and again after it broke. Questions are
pipelined; Kafka answers in order, so a question that waits at the other end (a fetch) holds up those behind it: who
waits long takes a connection of its own by naming a `purpose`. What breaks, or is not answered in time, raises
PeerUnreachable and takes the connection with it: nobody knows whether the peer still lives, and every answer behind
would be late as well. When to try again is for the caller to say. What was asked and not sent by then is taken back: a
marker that arrived when the network is well again, after it was written in another way, would end the producer's next
transaction.

Each connection begins with ApiVersions. Where no version is asked for, the highest is taken that both ends know, so
that an older or newer node, or one of Apache Kafka, is understood.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from millstream.protocol.answer_reader import AnswerReader, BadFrame
from millstream.protocol.declare import declaration
from millstream.protocol.errors import ErrorCode, MalformedMessage
from millstream.protocol.frames import decode_response, encode_request
from millstream.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from millstream.runtime.ports import Network

RESPONSE_BYTES_MAX = 1 << 30
_API_VERSIONS_VERSION = 3
# A network that swallows the first packet would otherwise be tried again by the kernel ever more rarely.
_DIAL_TIMEOUT_S = 2


class PeerUnreachable(Exception):
    """The node could not be reached, hung up, answered nonsense or did not answer in time. The request may or may not
    have been carried out."""


class Peers:
    """All connections that this node has made to others."""

    def __init__(self, network: Network, client_id: str) -> None:
        self._network = network
        self.client_id = client_id
        self._peers: dict[tuple[str, int, str], Peer] = {}
        self._closed = False

    def at(self, host: str, port: int, purpose: str = "") -> Peer:
        """The peer at this address; nothing is dialled before it is asked something."""
        found = self._peers.get((host, port, purpose))
        if found is None:
            found = self._peers[host, port, purpose] = Peer(self._network, host, port, self.client_id)
            if self._closed:
                found.close()
        return found

    def forget(self, host: str, port: int, purpose: str = "") -> None:
        """Nobody will ask this peer again: hang up."""
        found = self._peers.pop((host, port, purpose), None)
        if found is not None:
            found.close()

    def close(self) -> None:
        """Hang up everywhere; who waits for an answer, or asks from now on, hears PeerUnreachable."""
        self._closed = True
        for peer in self._peers.values():
            peer.close()


class Peer:
    """One address. Made by `Peers.at`."""

    def __init__(self, network: Network, host: str, port: int, client_id: str) -> None:
        self.host = host
        self.port = port
        self._network = network
        self._client_id = client_id
        self._connection: _Connection | None = None
        self._dialling: asyncio.Task[_Connection] | None = None
        self._closed = False

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    async def ask(self, request: object, *, version: int | None = None, timeout_ms: int) -> Any:
        """Send the request and wait for its decoded answer."""
        name = type(request).__name__.removesuffix("Request")
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                connection = await self._connected()
                if version is None:
                    version = connection.version_of(type(request))
                return await connection.ask(request, version)
        except TimeoutError:
            if connection is not None:
                connection.hang_up()
            raise PeerUnreachable(f"{self} did not answer {name} within {timeout_ms} ms") from None

    def begin(self, request: object, *, version: int, timeout_ms: int) -> asyncio.Future[Any]:
        """As `ask`, for who asks again and again: where the connection is there, the request is sent before this
        returns, and no task is needed for the answer."""
        connection = self._connection
        if connection is None or connection.lost:
            asking = self.ask(request, version=version, timeout_ms=timeout_ms)
            return asyncio.get_running_loop().create_task(asking)
        return connection.send(request, version, timeout_ms)

    async def version_of(self, request: type, *, timeout_ms: int) -> int:
        """The highest version of a request that both ends know; where a message's fields depend on it."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return (await self._connected()).version_of(request)
        except TimeoutError:
            raise PeerUnreachable(f"{self} could not be reached within {timeout_ms} ms") from None

    def close(self) -> None:
        self._closed = True
        if self._dialling is not None:
            self._dialling.cancel()
        if self._connection is not None:
            self._connection.hang_up()

    async def _connected(self) -> _Connection:
        if self._connection is not None and not self._connection.lost:
            return self._connection
        if self._closed:
            raise PeerUnreachable(f"{self}: this node is stopping")
        if self._dialling is None:
            self._dialling = asyncio.get_running_loop().create_task(self._dial())
            self._dialling.add_done_callback(self._dialled)
        dialling = self._dialling
        try:
            # Several may wait for it, and one of them giving up must not take it from the others.
            return await asyncio.shield(dialling)
        except asyncio.CancelledError:
            if dialling.cancelled():
                raise PeerUnreachable(f"{self}: this node is stopping") from None
            raise

    async def _dial(self) -> _Connection:
        connection: _Connection | None = None
        try:
            async with asyncio.timeout(_DIAL_TIMEOUT_S):
                _, connection = await self._network.connect(
                    lambda: _Connection(str(self), self._client_id), self.host, self.port, forgets_unsent=True
                )
                assert connection is not None
                await connection.introduce()
        except OSError as error:
            if connection is not None:
                connection.hang_up()
            raise PeerUnreachable(f"{self} cannot be reached: {error}") from error
        except BaseException:
            if connection is not None:
                connection.hang_up()
            raise
        self._connection = connection
        return connection

    def _dialled(self, dialling: asyncio.Task[_Connection]) -> None:
        self._dialling = None
        if not dialling.cancelled():
            # Looked at here, because everybody who waited for it may have given up.
            dialling.exception()


class _Connection(asyncio.BufferedProtocol):
    """Frames out, frames in, in order. An answer has a buffer of its own, which the message may keep."""

    def __init__(self, address: str, client_id: str) -> None:
        self.lost = False
        self._address = address
        self._client_id = client_id
        self._transport = cast("asyncio.Transport", None)
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[int, int, int, asyncio.Future[Any], asyncio.TimerHandle | None]] = deque()
        self._correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}
        self._reader = AnswerReader(RESPONSE_BYTES_MAX)

    # --- asking

    async def introduce(self) -> None:
        """Learn which versions the peer speaks."""
        request = ApiVersionsRequest(client_software_name="millstream", client_software_version="1")
        answer = await self.ask(request, _API_VERSIONS_VERSION)
        if answer.error_code != ErrorCode.NONE:
            raise PeerUnreachable(f"{self._address} refused ApiVersions with the code {answer.error_code}")
        self._versions = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}

    def version_of(self, request: type) -> int:
        declared = declaration(request)
        assert declared.api_key is not None
        first, last = self._versions.get(declared.api_key, (0, -1))
        highest = declared.unstable.first - 1 if declared.unstable.last >= 0 else declared.versions.last
        version = min(last, highest)
        if version < max(first, declared.versions.first):
            name = request.__name__.removesuffix("Request")
            raise PeerUnreachable(f"{self._address} speaks no version of {name} that this node knows")
        return version

    async def ask(self, request: object, version: int) -> Any:
        if self.lost:
            raise PeerUnreachable(f"the connection to {self._address} was lost")
        return await self.send(request, version)

    def send(self, request: object, version: int, timeout_ms: int | None = None) -> asyncio.Future[Any]:
        """The answer to come, or PeerUnreachable in its place; after that time the connection is given up."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        frame = encode_request(request, version, self._correlation_id, self._client_id)
        api_key = declaration(type(request)).api_key
        assert api_key is not None
        answer: asyncio.Future[Any] = self._loop.create_future()
        timer = None
        if timeout_ms is not None:
            timer = self._loop.call_later(timeout_ms / 1000, self._too_late, timeout_ms)
        self._waiting.append((self._correlation_id, api_key, version, answer, timer))
        self._transport.write(frame)
        return answer

    def _too_late(self, timeout_ms: int) -> None:
        self.hang_up(f"no answer within {timeout_ms} ms")

    def hang_up(self, why: str = "this node hung up") -> None:
        if not self.lost:
            self._transport.abort()
            self._lose(why)

    def _lose(self, why: str) -> None:
        self.lost = True
        waiting, self._waiting = self._waiting, deque()
        for _, _, _, answer, timer in waiting:
            if timer is not None:
                timer.cancel()
            if not answer.done():
                answer.set_exception(PeerUnreachable(f"the connection to {self._address} was lost: {why}"))

    # --- what the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.lost:
            self._lose(str(exc) if exc is not None else "the peer hung up")

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._reader.space()

    def buffer_updated(self, nbytes: int) -> None:
        try:
            answers = self._reader.received(nbytes)
        except BadFrame as bad:
            self.hang_up(f"it announced a frame of {bad.length} bytes")
            return
        for frame in answers:
            self._answered(frame)

    def _answered(self, frame: bytearray) -> None:
        if self.lost:
            return
        if not self._waiting or int.from_bytes(frame[:4], "big", signed=True) != self._waiting[0][0]:
            self.hang_up("it answered a question that was not asked")
            return
        _, api_key, version, answer, timer = self._waiting.popleft()
        if timer is not None:
            timer.cancel()
        if answer.done():  # whoever asked has given up
            return
        try:
            answer.set_result(decode_response(api_key, version, frame)[1])
        except MalformedMessage as error:
            answer.set_exception(PeerUnreachable(f"{self._address} sent an answer that makes no sense: {error}"))
            self.hang_up("it sent an answer that makes no sense")
