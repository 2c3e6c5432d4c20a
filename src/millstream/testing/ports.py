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
    from millstream.testing.network import HostNetwork

T = TypeVar("T")

# An arbitrary but fixed morning; record timestamps start here.
EPOCH_MS = 1_700_000_000_000
_WORK_S_MAX = 0.002


class VirtualClock:
    """The loop's time, for both clocks. The wall clock may be off, and may be set while everything runs."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._time = loop.time
        self.wall_error_ms = 0

    def wall_ms(self) -> int:
        return EPOCH_MS + self.wall_error_ms + int(self._time() * 1000)

    def monotonic_ms(self) -> int:
        return int(self._time() * 1000)


class SeededRandom:
    """Randomness that a seed repeats."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def uuid(self) -> Uuid:
        return Uuid(b"\x40" + self._random.randbytes(15))

    def below(self, bound: int) -> int:
        return self._random.randrange(bound)


class SimulatedWorkers:
    """Threads and children as work that takes a while of virtual time, on the loop itself.

    The work is done at the beginning or at the end of that while, by chance: an fsync may have reached the disk long
    before its caller hears of it, or not before the very end.
    """

    def __init__(self, random: Random, disk: LossyDisk | None = None) -> None:
        self._random = random
        self._disk = disk
        self.work_s_max = _WORK_S_MAX
        """A slow disk: how long an fsync takes at the most."""

    async def _in_a_while(self, call: Callable[..., T], *arguments: object) -> T:
        while_s = self._random.random() * self.work_s_max
        if self._random.random() < 0.5:
            result = call(*arguments)
            await asyncio.sleep(while_s)
            return result
        await asyncio.sleep(while_s)
        return call(*arguments)

    def in_thread(self, call: Callable[..., T], *arguments: object) -> Awaitable[T]:
        return asyncio.ensure_future(self._in_a_while(call, *arguments))

    async def in_child(self, module: str, arguments: Sequence[str]) -> None:
        await self._in_a_while(importlib.import_module(module).main, list(arguments), self._disk)

    def close(self) -> None:
        """There are no threads to end."""


class SimulatedPorts:
    """One machine's clock, randomness, disk and network."""

    def __init__(self, network: HostNetwork, disk: LossyDisk, random: Random) -> None:
        self.clock = VirtualClock(network.network.loop)
        self.random = SeededRandom(random)
        self.disk = disk
        self.network = network
        self.workers = SimulatedWorkers(random, disk)
