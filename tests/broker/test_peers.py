"""Questions to another node: answered in order, tried again on a new connection, given up in time."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from millstream.broker.peers import Peers, PeerUnreachable
from millstream.protocol.frames import decode_request_header, encode_response
from millstream.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from millstream.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from millstream.testing.loop import VirtualLoop
from millstream.testing.network import SimulatedNetwork

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

API_VERSIONS, FIND_COORDINATOR = 18, 10


class Answering(asyncio.Protocol):
    """Answers ApiVersions, and other requests as told: with a number, late, with nonsense, or by hanging up."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._received = bytearray()

    def connection_made(self, transport: Any) -> None:
        self._scene.connections += 1
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4 and len(self._received) >= 4 + int.from_bytes(self._received[:4], "big"):
            length = int.from_bytes(self._received[:4], "big")
            frame = bytes(self._received[4 : 4 + length])
            del self._received[: 4 + length]
            self._answer(*decode_request_header(frame)[:3])

    def _answer(self, api_key: int, version: int, correlation_id: int) -> None:
        if api_key == API_VERSIONS:
            keys = [ApiVersion(api_key=FIND_COORDINATOR, min_version=0, max_version=self._scene.version_max)]
            response: Any = ApiVersionsResponse(api_keys=keys)
        else:
            self._scene.asked.append(version)
            self._scene.was_asked.set()
            how = self._scene.how.pop(0) if self._scene.how else "answer"
            if how == "hang up":
                self._transport.abort()
                return
            if how == "nothing":
                return
            if how == "nonsense":
                self._transport.write(b"\x00\x00\x00\x06" + correlation_id.to_bytes(4, "big") + b"\xff\xff")
                return
            response = FindCoordinatorResponse(error_code=0, node_id=len(self._scene.asked), host="h", port=1)
        self._transport.write(encode_response(api_key, version, correlation_id, response))


class Scene:
    """One peer at peer:9093 on a simulated network."""

    def __init__(self) -> None:
        self.how: list[str] = []
        self.asked: list[int] = []
        self.was_asked = asyncio.Event()
        self.connections = 0
        self.version_max = 2

    def play(self, test: Callable[[Peers], Coroutine[Any, Any, None]]) -> None:
        loop = VirtualLoop()
        network = SimulatedNetwork(loop, Random(1))

        async def scenario() -> None:
            await network.at("peer").listen(lambda: Answering(self), "peer", 9093)
            peers = Peers(network.at("here"), "tests")
            try:
                await test(peers)
            finally:
                peers.close()

        loop.run(scenario())


async def ask(peers: Peers, *, version: int | None = None, timeout_ms: int = 1000) -> int:
    request = FindCoordinatorRequest(key="k", key_type=0, coordinator_keys=[])
    answer = await peers.at("peer", 9093).ask(request, version=version, timeout_ms=timeout_ms)
    return int(answer.node_id)


def test_questions_share_a_connection_and_are_answered_in_order() -> None:
    scene = Scene()

    async def test(peers: Peers) -> None:
        assert await asyncio.gather(*(ask(peers) for _ in range(5))) == [1, 2, 3, 4, 5]

    scene.play(test)
    assert scene.connections == 1


def test_without_a_version_the_highest_that_both_know_is_taken() -> None:
    scene = Scene()

    async def test(peers: Peers) -> None:
        await ask(peers)
        await ask(peers, version=1)

    scene.play(test)
    assert scene.asked == [2, 1]


@pytest.mark.parametrize("trouble", ["hang up", "nothing", "nonsense"])
def test_what_goes_wrong_is_told_and_the_next_question_finds_a_new_connection(trouble: str) -> None:
    scene = Scene()
    scene.how = [trouble]

    async def test(peers: Peers) -> None:
        with pytest.raises(PeerUnreachable):
            await ask(peers)
        assert await ask(peers) == 2

    scene.play(test)
    assert scene.connections == 2


def test_an_address_that_nobody_listens_on_is_told_at_once() -> None:
    async def test(peers: Peers) -> None:
        with pytest.raises(PeerUnreachable, match="nobody:1 cannot be reached"):
            await peers.at("nobody", 1).ask(FindCoordinatorRequest(key="k"), version=0, timeout_ms=60_000)

    Scene().play(test)


def test_who_gives_up_waiting_does_not_disturb_the_others() -> None:
    scene = Scene()

    async def test(peers: Peers) -> None:
        asking = [asyncio.ensure_future(ask(peers)) for _ in range(3)]
        await asyncio.sleep(0)
        asking[1].cancel()
        assert await asking[0] == 1
        assert await asking[2] in (2, 3)

    scene.play(test)
    assert scene.connections == 1


def test_closing_tells_everybody_who_waits() -> None:
    scene = Scene()
    scene.how = ["nothing"]

    async def test(peers: Peers) -> None:
        asking = asyncio.ensure_future(ask(peers, timeout_ms=60_000))
        await scene.was_asked.wait()
        peers.close()
        with pytest.raises(PeerUnreachable):
            await asking
        with pytest.raises(PeerUnreachable, match="stopping"):
            await ask(peers)

    scene.play(test)
