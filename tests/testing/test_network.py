"""The simulated network: bytes keep their order, links break and heal, machines vanish."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from millstream.testing.loop import Process, VirtualLoop
from millstream.testing.network import SimulatedNetwork


class Ear(asyncio.Protocol):
    """Hears what comes."""

    def __init__(self) -> None:
        self.heard = b""
        self.lost: list[Exception | None] = []
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        self.heard += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.append(exc)


class World:
    """A server on `there` and a client on `here`."""

    def __init__(self, loop: VirtualLoop) -> None:
        self.network = SimulatedNetwork(loop, Random(1))
        self.server = Ear()
        self.client = Ear()

    async def connect(self) -> None:
        await self.network.at("there").listen(lambda: self.server, "there", 9092)
        await self.network.at("here").connect(lambda: self.client, "there", 9092)

    def say(self, data: bytes) -> None:
        assert self.client.transport is not None
        self.client.transport.write(data)


def run(scenario) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        await scenario(World(loop))

    loop.run(main())


def test_bytes_arrive_in_order() -> None:
    async def scenario(world: World) -> None:
        await world.connect()
        sent = [f"{number} ".encode() for number in range(500)]
        for each in sent:
            world.say(each)
        await asyncio.sleep(5)
        assert world.server.heard == b"".join(sent)

    run(scenario)


def test_what_coincides_arrives_in_one_turn_of_the_loop() -> None:
    def meetings(share: float) -> int:
        """How many of 200 deliveries to two machines come in a turn in which the other one hears something, too."""
        loop = VirtualLoop()
        heard: dict[str, list[int]] = {"one": [], "other": []}

        class Listener(asyncio.Protocol):
            def __init__(self, host: str) -> None:
                self._host = host

            def data_received(self, data: bytes) -> None:
                heard[self._host].append(loop.turns)

        async def main() -> None:
            network = SimulatedNetwork(loop, Random(1))
            network.coinciding_share = share
            transports = []
            for host in heard:
                await network.at(host).listen(lambda host=host: Listener(host), host, 9092)
                transport, _ = await network.at("here").connect(asyncio.Protocol, host, 9092)
                transports.append(transport)
            for _ in range(200):
                for transport in transports:
                    transport.write(b"x")
                await asyncio.sleep(0.1)

        loop.run(main())
        return len(set(heard["one"]) & set(heard["other"]))

    assert meetings(0.0) < 5
    assert meetings(1.0) > 100


def test_a_blocked_link_holds_back_one_direction_only() -> None:
    async def scenario(world: World) -> None:
        await world.connect()
        await asyncio.sleep(1)
        world.network.block(["here"], ["there"], one_way=True)
        world.say(b"held back")
        assert world.server.transport is not None
        world.server.transport.write(b"gets through")
        await asyncio.sleep(60)
        assert (world.server.heard, world.client.heard) == (b"", b"gets through")

    run(scenario)


def test_after_a_partition_bytes_arrive_or_the_connection_is_broken() -> None:
    ends: dict[bool, None] = {}
    tried: list[World] = []

    async def scenario(world: World) -> None:
        world.network.random.seed(len(tried))
        tried.append(world)
        await world.connect()
        await asyncio.sleep(1)
        world.network.block(["here"], ["there"])
        world.say(b"late")
        await asyncio.sleep(10)
        world.network.heal()
        await asyncio.sleep(1)
        assert (world.server.heard == b"late") != bool(world.server.lost)
        ends[bool(world.server.lost)] = None

    while len(tried) < 10:
        run(scenario)
    assert len(ends) == 2


def test_nobody_connects_over_a_blocked_link() -> None:
    async def scenario(world: World) -> None:
        world.network.block(["here"], ["there"])
        with pytest.raises(TimeoutError):
            await world.connect()

    run(scenario)


def test_nobody_connects_where_nobody_listens() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(ConnectionRefusedError):
            await world.network.at("here").connect(Ear, "there", 1)

    run(scenario)


def test_who_talks_to_a_killed_program_hears_a_reset_soon() -> None:
    async def scenario(world: World) -> None:
        await world.connect()
        world.network.machine_lost("there")
        await asyncio.sleep(1)
        assert isinstance(world.client.lost[0], ConnectionResetError)
        assert world.server.lost == [], "the dead are not told"

    run(scenario)


def test_who_talks_to_a_machine_without_power_hears_nothing_before_it_is_back() -> None:
    async def scenario(world: World) -> None:
        await world.connect()
        world.network.machine_lost("there", power=True)
        world.say(b"anybody there?")
        await asyncio.sleep(60)
        assert world.client.lost == []
        world.network.machine_back("there")
        await asyncio.sleep(1)
        assert isinstance(world.client.lost[0], ConnectionResetError)

    run(scenario)


def test_a_stopped_program_accepts_and_reads_when_it_goes_on() -> None:
    async def scenario(world: World) -> None:
        loop = world.network.loop
        assert isinstance(loop, VirtualLoop)
        process = Process(loop, "server")

        async def serve() -> None:
            await world.network.at("there").listen(lambda: world.server, "there", 9092)

        process.start(serve())
        await asyncio.sleep(0.1)
        process.stop()
        await world.network.at("here").connect(lambda: world.client, "there", 9092)
        world.say(b"hello")
        await asyncio.sleep(5)
        assert world.server.transport is None, "the kernel has taken the connection, the program has not seen it"
        process.go_on()
        await asyncio.sleep(0.1)
        assert world.server.heard == b"hello"

    run(scenario)


def test_who_writes_more_than_is_read_is_told_to_pause() -> None:
    async def scenario(world: World) -> None:
        paused: list[bool] = []
        world.client.pause_writing = lambda: paused.append(True)  # type: ignore[method-assign]
        world.client.resume_writing = lambda: paused.append(False)  # type: ignore[method-assign]
        await world.connect()
        await asyncio.sleep(0.1)
        assert world.server.transport is not None
        world.server.transport.pause_reading()
        world.say(bytes(100_000))
        await asyncio.sleep(1)
        assert paused == [True]
        world.server.transport.resume_reading()
        await asyncio.sleep(1)
        assert paused == [True, False]
        assert len(world.server.heard) == 100_000

    run(scenario)


@pytest.mark.parametrize(("one_way", "back"), [(False, True), (True, False)])
def test_links_are_slowed_both_ways_unless_told_otherwise(one_way: bool, back: bool) -> None:
    async def scenario(world: World) -> None:
        network = world.network
        network.slow_down("here", ["there", "elsewhere", "here"], 5.0, one_way=one_way)
        for other in ("there", "elsewhere"):
            assert network.delay_s("here", other) >= 5.0
            assert (network.delay_s(other, "here") >= 5.0) == back
        assert network.delay_s("there", "elsewhere") < 5.0
        assert network.delay_s("here", "here") < 5.0
        network.heal()
        assert network.delay_s("here", "there") < 5.0

    run(scenario)


def test_a_machine_alone_is_blocked_by_its_name() -> None:
    async def scenario(world: World) -> None:
        world.network.block("here", "there")
        assert world.network.is_blocked("here", "there")
        assert world.network.is_blocked("there", "here")

    run(scenario)
