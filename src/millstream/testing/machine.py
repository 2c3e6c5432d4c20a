"""One simulated machine, from power on to power off: a node, its disk, and clients that talk to it.

    machine = Machine(seed=7, settings={"millstream.acks.fsync": "true"})
    machine.run(workload)            # boots the node, runs `workload(machine)`, stops the node
    machine.disk.power_off_at = 40   # the 40th write, fsync or rename of the next run finds no power
    machine.run(workload)            # ends early; `machine.lost_power` is True
    machine.disk.crash()             # power is back, unsynced bytes are not
    machine.run(check)

Every run has a loop of its own, so nothing of a dead node runs on. Same seed, same run.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING, Any

from millstream.broker.node import Node
from millstream.client.client import Client
from millstream.settings.loading import load
from millstream.testing.disk import LossyDisk, PowerLost
from millstream.testing.loop import VirtualLoop
from millstream.testing.network import SimulatedNetwork
from millstream.testing.ports import SimulatedPorts

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

HOST = "broker-1"
PORT = 9092
DIRECTORY = "/data"


class Machine:
    """See the module's docstring."""

    node: Node
    client: Client

    def __init__(self, *, seed: int, settings: Mapping[str, str] | None = None) -> None:
        self.random = Random(seed)  # noqa: S311  # a simulation has to repeat
        self.disk = LossyDisk(self.random)
        self.lost_power = False
        self._settings = {
            "log.dirs": DIRECTORY,
            "listeners": f"PLAINTEXT://{HOST}:{PORT}",
            **(settings or {}),
        }

    def run(self, workload: Callable[[Machine], Awaitable[None]], *, stop_cleanly: bool = True) -> None:
        """Boot, run the workload to its end or to the loss of power, and stop."""
        loop = VirtualLoop()
        loop.set_exception_handler(_ignore_power_loss)
        network = SimulatedNetwork(loop, self.random)
        self.lost_power = False
        power_lost: asyncio.Event = asyncio.Event()

        def on_power_off() -> None:
            self.lost_power = True
            network.machine_lost(HOST)
            power_lost.set()

        self.disk.on_power_off = on_power_off
        loop.run(self._live(workload, network, power_lost, stop_cleanly=stop_cleanly))

    async def _live(
        self,
        workload: Callable[[Machine], Awaitable[None]],
        network: SimulatedNetwork,
        power_lost: asyncio.Event,
        *,
        stop_cleanly: bool,
    ) -> None:
        ports = SimulatedPorts(network.at(HOST), self.disk, self.random)
        alive = asyncio.ensure_future(self._boot_and_work(workload, ports, stop_cleanly=stop_cleanly))
        dead = asyncio.ensure_future(power_lost.wait())
        waited_for: list[asyncio.Future[Any]] = [alive, dead]
        await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
        for future in waited_for:
            future.cancel()
        outcome = (await asyncio.gather(alive, return_exceptions=True))[0]
        if isinstance(outcome, Exception) and not self.lost_power:
            raise outcome

    async def _boot_and_work(
        self, workload: Callable[[Machine], Awaitable[None]], ports: SimulatedPorts, *, stop_cleanly: bool
    ) -> None:
        self.node = Node(load(options=self._settings).settings, ports)
        await self.node.start()
        away = SimulatedPorts(ports.network.network.at("client"), self.disk, self.random)
        self.client = Client({"bootstrap.servers": f"{HOST}:{PORT}"}, ports=away)
        await workload(self)
        await self.client.close()
        if stop_cleanly:
            await self.node.stop()


def _ignore_power_loss(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Tasks of a machine without power fail with PowerLost; that is no news. Everything else is."""
    if not isinstance(context.get("exception"), PowerLost):
        loop.default_exception_handler(context)
