"""A connection against peers that misbehave: written by hand, on loopback."""

from __future__ import annotations

import asyncio
import struct
from contextlib import asynccontextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec

import pytest

from millstream.client.client import Client
from millstream.client.errors import ClientError, ConnectionLost, NeverReached, ProtocolViolation, TimedOut
from millstream.client.options import Options
from millstream.protocol import frames
from millstream.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from millstream.protocol.messages.metadata_api import MetadataRequest, MetadataRequestTopic, MetadataResponse

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    Behaviour = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

P = ParamSpec("P")


def on_a_loop(test: Callable[P, Awaitable[None]]) -> Callable[P, None]:
    """Run an asynchronous claim on an event loop of its own, within a deadline."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def within_deadline() -> None:
            async with asyncio.timeout(10):
                await test(*args, **kwargs)

        asyncio.run(within_deadline())

    return run


API_VERSIONS, METADATA = 18, 3
ASK = MetadataRequest(topics=[])
ANSWER = MetadataResponse(brokers=[], topics=[])


@asynccontextmanager
async def client_of(behaviour: Behaviour, **options: str) -> AsyncIterator[Client]:
    serving: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await behaviour(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone, which is what some claims are about
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.append(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    given = {"bootstrap.servers": f"127.0.0.1:{port}", "socket.timeout.ms": "3000", **options}
    try:
        async with Client(Options.parse({name.replace("_", "."): value for name, value in given.items()})) as client:
            yield client
    finally:
        server.close()
        await server.wait_closed()
        await asyncio.gather(*serving)


async def read_request(reader: asyncio.StreamReader) -> tuple[int, int, int]:
    """(API key, version, correlation id) of the next request."""
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    key, version, correlation_id, _, _ = frames.decode_request_header(await reader.readexactly(length))
    return key, version, correlation_id


def versions(*keys: tuple[int, int, int], error: int = 0) -> ApiVersionsResponse:
    listed = [ApiVersion(api_key=key, min_version=low, max_version=high) for key, low, high in keys]
    return ApiVersionsResponse(error_code=error, api_keys=listed)


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the first question as a broker that speaks Metadata 12."""
    key, version, correlation_id = await read_request(reader)
    answer = versions((API_VERSIONS, 0, 4), (METADATA, 0, 12))
    writer.write(frames.encode_response(key, version, correlation_id, answer))


@on_a_loop
async def test_requests_are_pipelined_and_answers_find_their_askers() -> None:
    seen: list[int] = []

    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        asked = [await read_request(reader) for _ in range(3)]
        seen.extend(correlation_id for _, _, correlation_id in asked)
        for number, (key, version, correlation_id) in enumerate(asked):
            answer = MetadataResponse(brokers=[], topics=[], controller_id=number)
            writer.write(frames.encode_response(key, version, correlation_id, answer))

    async with client_of(behaviour) as client:
        answers = await asyncio.gather(*(client.call(ASK) for _ in range(3)))
    assert [answer.controller_id for answer in answers] == [0, 1, 2]
    assert len(set(seen)) == 3


@on_a_loop
async def test_a_broker_with_old_api_versions_is_asked_again() -> None:
    asked: list[int] = []

    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for refuse in (True, False):
            key, version, correlation_id = await read_request(reader)
            asked.append(version)
            answer = versions((API_VERSIONS, 0, 2), (METADATA, 0, 5), error=35 if refuse else 0)
            writer.write(frames.encode_response(key, 0 if refuse else version, correlation_id, answer))
        key, version, correlation_id = await read_request(reader)
        asked.append(version)
        writer.write(frames.encode_response(key, version, correlation_id, ANSWER))

    async with client_of(behaviour) as client:
        await client.call(ASK)
    assert asked == [4, 2, 5]


@on_a_loop
async def test_an_api_that_the_broker_lacks_is_named() -> None:
    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        key, version, correlation_id = await read_request(reader)
        writer.write(frames.encode_response(key, version, correlation_id, versions((API_VERSIONS, 0, 4))))
        await reader.read()

    async with client_of(behaviour) as client:
        with pytest.raises(ClientError, match="does not know Metadata"):
            await client.call(ASK)


@pytest.mark.parametrize(
    "garbage", [b"HTTP/1.1 400 Bad Request\r\n\r\n", struct.pack(">i", -5), b"\x15\x03\x01\x00\x02"]
)
@on_a_loop
async def test_a_peer_that_does_not_speak_kafka_is_told_from_a_broker(garbage: bytes) -> None:
    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(garbage)
        await reader.read()

    async with client_of(behaviour) as client:
        with pytest.raises((ProtocolViolation, NeverReached), match=r"127\.0\.0\.1"):
            await client.call(ASK)


@on_a_loop
async def test_a_lost_connection_reaches_everybody_who_waits() -> None:
    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await read_request(reader)

    async with client_of(behaviour) as client:
        outcomes = await asyncio.gather(*(client.call(ASK) for _ in range(2)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ConnectionLost, ConnectionLost]


@on_a_loop
async def test_silence_ends_with_a_sentence_that_names_the_request() -> None:
    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await reader.read()

    async with client_of(behaviour, **{"socket.timeout.ms": "100"}) as client:
        with pytest.raises(TimedOut, match="Metadata within 100 ms"):
            await client.call(ASK)


@on_a_loop
async def test_a_peer_that_takes_nothing_in_is_given_up() -> None:
    """A request without an answer is done when the peer's side has it: one that hangs would be waited for for ever."""
    done = asyncio.Event()

    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        await done.wait()

    async with client_of(behaviour) as client:
        connection = await client.nodes.to_any()
        large = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 30_000)] * 1_000)
        with pytest.raises(TimedOut, match="did not take in Metadata within 100 ms"):
            await connection.send(large, 1, timeout_ms=100)
        assert not connection.usable
        done.set()


@on_a_loop
async def test_an_answer_that_nobody_asked_for_ends_the_connection() -> None:
    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        key, version, correlation_id = await read_request(reader)
        writer.write(frames.encode_response(key, version, correlation_id + 1, ANSWER))
        await reader.read()

    async with client_of(behaviour) as client:
        with pytest.raises(ProtocolViolation, match="not asked"):
            await client.call(ASK)


@on_a_loop
async def test_an_answer_with_bytes_left_over_is_a_violation() -> None:
    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        key, version, correlation_id = await read_request(reader)
        frame = frames.encode_response(key, version, correlation_id, ANSWER)
        writer.write(struct.pack(">i", len(frame) - 4 + 3) + frame[4:] + b"xyz")
        await reader.read()

    async with client_of(behaviour) as client:
        with pytest.raises(ProtocolViolation, match="makes no sense"):
            await client.call(ASK)


@on_a_loop
async def test_a_cancelled_caller_does_not_disturb_the_next() -> None:
    release = asyncio.Event()

    async def behaviour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await greet(reader, writer)
        asked = [await read_request(reader) for _ in range(2)]
        await release.wait()
        for number, (key, version, correlation_id) in enumerate(asked):
            answer = MetadataResponse(brokers=[], topics=[], controller_id=number)
            writer.write(frames.encode_response(key, version, correlation_id, answer))

    async with client_of(behaviour) as client:
        await client.nodes.to_any()
        first, second = (asyncio.create_task(client.call(ASK)) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        release.set()
        assert (await second).controller_id == 1
        assert first.cancelled()
