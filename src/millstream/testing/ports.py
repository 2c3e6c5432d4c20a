"""The ports of one simulated machine."""

from __future__ import annotations

import asyncio
import importlib
from typing import TYPE_CHECKING, TypeVar

from millstream.protocol.uuid import Uuid

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from random import Random

    from millstream.testing.disk import LossyDisk
    from millstream.testing.network import SimulatedNetwork

T = TypeVar("T")

# An arbitrary but fixed morning; record timestamps start here.
EPOCH_MS = 1_700_000_000_000


class VirtualClock:
    """The loop's time, for both clocks."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def wall_ms(self) -> int:
        return EPOCH_MS + self.monotonic_ms()

    def monotonic_ms(self) -> int:
        return int(self._loop.time() * 1000)


class SeededRandom:
    """Randomness that a seed repeats."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def uuid(self) -> Uuid:
        return Uuid(b"\x40" + self._random.randbytes(15))

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


class SimulatedWorkers:
    """Threads and children as work that takes a while of virtual time, on the loop itself."""

    def __init__(self, random: Random, disk: LossyDisk | None = None) -> None:
        self._random = random
        self._disk = disk

    async def _after_a_while(self, call: Callable[..., T], *arguments: object) -> T:
        await asyncio.sleep(self._random.random() * 0.002)
        return call(*arguments)

    def in_thread(self, call: Callable[..., T], *arguments: object) -> Awaitable[T]:
        return asyncio.ensure_future(self._after_a_while(call, *arguments))

    async def in_child(self, module: str, arguments: Sequence[str]) -> None:
        await self._after_a_while(importlib.import_module(module).main, list(arguments), self._disk)

    def close(self) -> None:
        """There are no threads to end."""


class SimulatedPorts:
    """One machine's clock, randomness, disk and network."""

    def __init__(self, network: SimulatedNetwork, disk: LossyDisk, random: Random) -> None:
        self.clock = VirtualClock(network.loop)
        self.random = SeededRandom(random)
        self.disk = disk
        self.network = network
        self.workers = SimulatedWorkers(random, disk)
