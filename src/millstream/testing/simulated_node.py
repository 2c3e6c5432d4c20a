"""A machine of a simulated cluster: a disk that stays, and programs (nodes) that come and go on it."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from millstream.broker.meta_properties import META_PROPERTIES
from millstream.broker.node import Node
from millstream.broker.storage_format import StorageLayout, StorageRefused
from millstream.protocol.errors import StorageError
from millstream.settings.loading import load
from millstream.testing.disk import LossyDisk, PowerLost
from millstream.testing.loop import Process
from millstream.testing.ports import SimulatedPorts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millstream.testing.cluster import SimulatedCluster

DIRECTORY = "/data"


class SimulatedNode:
    """`node` is the broker and controller that runs here now, or that ran here last."""

    def __init__(self, cluster: SimulatedCluster, node_id: int, settings: Mapping[str, str]) -> None:
        self.id = node_id
        self.host = f"node-{node_id}"
        self.settings = {"log.dirs": DIRECTORY, **settings}
        self.node: Node | None = None
        self.process: Process | None = None
        self.is_ready = False
        self.boots = 0
        self.last_words = ""
        self._cluster = cluster
        self.disks = 0
        self.stopped_midway = False
        """Power went at a step of the disk: what the program has in mind, it may not have written down yet."""
        self._lost_power = False
        self._random = Random(f"{cluster.seed} {self.host}")  # noqa: S311  # a simulation has to repeat
        self.disk = self._new_disk()
        self.ports = self._new_ports()

    def __repr__(self) -> str:
        return f"<{self.host}>"

    @property
    def runs(self) -> bool:
        """Whether a program lives here, if only a stopped one."""
        return self.process is not None and not self.process.is_dead

    @property
    def serving(self) -> Node | None:
        """The node, if it has come up and is neither stopped nor dead."""
        return self.node if self.is_ready and self.process is not None and self.process.runs else None

    # --- life

    def boot(self) -> None:
        """Turn the machine on if it is off, and start the program; `until_ready` waits for it."""
        if self.runs:
            return
        self._note("boots")
        self.disk.crash(keep_unsynced=not self._lost_power)
        if self._lost_power:
            self._lost_power = False
            self._cluster.network.machine_back(self.host)
        self.boots += 1
        self.is_ready = False
        self.node = None
        self.ports = self._new_ports()
        self.process = Process(self._cluster.loop, f"{self.host}#{self.boots}")
        self.process.start(self._serve(self.process))

    async def until_ready(self, *, within_s: float = 60) -> None:
        await self._cluster.until(
            lambda: self.is_ready or not self.runs, within_s=within_s, what=f"{self.host} comes up"
        )
        if not self.is_ready:
            raise AssertionError(f"{self.host} did not come up: {self.last_words or 'it was killed'}")

    async def restart(self) -> None:
        """Start it (again) and wait until it serves."""
        self.boot()
        await self.until_ready()

    async def shut_down(self, *, within_s: float = 60) -> None:
        """SIGTERM: stop in order."""
        if not self.runs or self.node is None or self.process is None:
            return
        self._note("is told to stop")
        process = self.process
        stopping = process.start(self.node.stop())
        try:
            await self._cluster.until(
                lambda: stopping.done() or process.is_dead, within_s=within_s, what=f"{self.host} stops in order"
            )
        finally:
            self._gone(process)
        if not stopping.cancelled() and stopping.done() and (error := stopping.exception()) is not None:
            raise error

    def kill(self, *, power: bool = False) -> None:
        """SIGKILL; with `power` the machine loses power, and everything unsynced is lost."""
        if self.runs and self.process is not None:
            self._note("loses power" if power else "is killed")
            self._lost_power = power
            process = self.process
            if power:
                self.disk.power_off()
            self._gone(process, power=power)

    def pause(self) -> None:
        """SIGSTOP."""
        if self.process is not None:
            self._note("is stopped")
            self.process.stop()

    def go_on(self) -> None:
        """SIGCONT."""
        if self.process is not None:
            self._note("goes on")
            self.process.go_on()

    def lose_disk(self) -> None:
        """The disk dies with everything on it, and the machine with it; it boots from a new one."""
        self.kill(power=True)
        self.disk = self._new_disk()

    # --- inside

    async def _serve(self, process: Process) -> None:
        """What `millstream broker` does, in this world."""
        try:
            self._format()
            node = self.node = Node(load(options=self.settings).settings, self.ports)
            await node.start()
            self.is_ready = True
            self._note("serves")
            await asyncio.wait([node.failed])
            self.last_words = f"failed: {node.failed.result()}"
            self._note(self.last_words)
            await node.stop()
        except (StorageRefused, StorageError, OSError) as refusal:
            self.last_words = f"{type(refusal).__name__}: {refusal}"
            self._note(self.last_words)
        except PowerLost:
            return
        self._gone(process)

    def _format(self) -> None:
        if not self.disk.exists(f"{DIRECTORY}/{META_PROPERTIES}"):
            self._cluster.format(self, StorageLayout.of((DIRECTORY,)))

    def _gone(self, process: Process, *, power: bool = False) -> None:
        if not process.is_dead:
            # Its last turn may have told others something.
            self._cluster.look_at(self)
            process.kill()
            self.is_ready = False
            self._cluster.network.machine_lost(self.host, power=power)

    def _power_went(self) -> None:
        """At a step of the disk, in the middle of the program."""
        if self.process is not None and not self.process.is_dead:
            self._lost_power = self.stopped_midway = True
            self._gone(self.process, power=True)
            self.stopped_midway = False

    def _new_disk(self) -> LossyDisk:
        self.disks += 1
        disk = LossyDisk(Random(f"{self._cluster.seed} {self.host} disk {self.disks}"))  # noqa: S311
        disk.on_step = lambda what: self._cluster.trace.note(self.host, what)
        disk.on_power_off = self._power_went
        return disk

    def _new_ports(self) -> SimulatedPorts:
        return SimulatedPorts(self._cluster.network.at(self.host), self.disk, self._random)

    def _note(self, what: str) -> None:
        self._cluster.trace.note(self.host, what)
